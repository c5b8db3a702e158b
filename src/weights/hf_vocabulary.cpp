#include "weights/hf_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/mapped_file.h"
#include "text/json_text.h"
#include "weights/json.h"
#include "weights/tokenizer_json.h"

namespace eider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostConfigBytes = std::size_t{64} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The file's object, an empty one where there is no such file.
Result<json> read_object(const fs::path& path) {
  if (!is_there(path)) return json::object();
  EIDER_TRY(json object, read_json_file(path.string(), kMostConfigBytes));
  if (!object.is_object()) return error("{}: expected an object", path.string());
  return object;
}

/// The token that config[key] spells, as text or as an object with its content. Configurations name tokens
/// that the vocabulary does not have; those are nobody's.
std::optional<TokenId> named_token(const json& config, const char* key, const Vocabulary& vocabulary) {
  auto value = config.find(key);
  if (value == config.end()) return std::nullopt;
  if (value->is_object()) {
    const json& token = *value;
    value = token.find("content");
    if (value == token.end()) return std::nullopt;
  }
  if (!value->is_string()) return std::nullopt;
  const auto found = std::ranges::find(vocabulary.tokens, value->get_ref<const std::string&>());
  if (found == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(found - vocabulary.tokens.begin());
}

/// The template, or of a list of named ones the default.
Result<std::string> read_chat_template(const json& config) {
  const auto value = config.find("chat_template");
  if (value == config.end() || value->is_null()) return std::string();
  if (value->is_string()) return value->get<std::string>();
  if (value->is_array()) {
    for (const json& named : *value) {
      if (named.is_object() && named.value("name", json()) == "default" && named.contains("template") &&
          named["template"].is_string())
        return named["template"].get<std::string>();
    }
  }
  return error("chat_template: expected a string, or a list that names one default");
}

Result<std::optional<bool>> read_flag(const json& config, const char* key) {
  const auto value = config.find(key);
  if (value == config.end() || value->is_null()) return std::optional<bool>();
  if (!value->is_boolean()) return error("{}: expected true or false", key);
  return std::optional<bool>(value->get<bool>());
}

Status apply_tokenizer_config(const json& config, AddSpecialRule rule, Vocabulary& vocabulary) {
  const std::optional<TokenId> eos = named_token(config, "eos_token", vocabulary);
  if (eos && vocabulary.eos && vocabulary.eos != eos) {
    vocabulary.more_eos.push_back(*eos);  // the post-processor's is the one that is added
  } else if (eos) {
    vocabulary.eos = eos;
  }
  if (!vocabulary.bos) vocabulary.bos = named_token(config, "bos_token", vocabulary);
  vocabulary.padding = named_token(config, "pad_token", vocabulary);
  EIDER_TRY(vocabulary.chat_template, read_chat_template(config));
  if (rule == AddSpecialRule::kTokenizerConfig) {
    EIDER_TRY(const auto add_bos, read_flag(config, "add_bos_token"));
    EIDER_TRY(const auto add_eos, read_flag(config, "add_eos_token"));
    vocabulary.add_bos = add_bos.value_or(vocabulary.add_bos);
    vocabulary.add_eos = add_eos.value_or(vocabulary.add_eos);
    EIDER_TRY(const auto clean_up, read_flag(config, "clean_up_tokenization_spaces"));
    vocabulary.clean_up_spaces = clean_up.value_or(false);
  }
  return {};
}

/// eos_token_id: an id or several.
Status apply_generation_config(const json& config, Vocabulary& vocabulary) {
  const auto value = config.find("eos_token_id");
  if (value == config.end() || value->is_null()) return {};
  for (const json& id : value->is_array() ? *value : json::array({*value})) {
    if (!id.is_number_integer() || id < 0 || id >= vocabulary.tokens.size())
      return error("eos_token_id: {} is not the id of a token", to_json_text(id));
    vocabulary.more_eos.push_back(id.get<TokenId>());
  }
  return {};
}

Result<Vocabulary> read_tokenizer_json(const std::string& path) {
  EIDER_TRY(const MappedFile file, MappedFile::open(path));
  return parse_tokenizer_json(file.bytes()).context(path);
}

}  // namespace

Result<Vocabulary> read_hf_vocabulary(const std::string& tokenizer_path, AddSpecialRule rule) {
  EIDER_TRY(Vocabulary vocabulary, read_tokenizer_json(tokenizer_path));
  const fs::path folder = fs::path(tokenizer_path).parent_path();
  const fs::path config_path = folder / "tokenizer_config.json";
  EIDER_TRY(const json config, read_object(config_path));
  EIDER_TRY_STATUS(apply_tokenizer_config(config, rule, vocabulary).context(config_path.string()));

  const fs::path generation_path = folder / "generation_config.json";
  EIDER_TRY(const json generation, read_object(generation_path));
  EIDER_TRY_STATUS(apply_generation_config(generation, vocabulary).context(generation_path.string()));

  const fs::path template_path = folder / "chat_template.jinja";
  if (is_there(template_path)) {
    EIDER_TRY(const MappedFile file, MappedFile::open(template_path.string()));
    vocabulary.chat_template.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  return vocabulary;
}

}  // namespace eider
