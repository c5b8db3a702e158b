#include "weights/hf_vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/mapped_file.h"
#include "weights/generation_config.h"
#include "weights/json.h"
#include "weights/tokenizer_json.h"

namespace eider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostConfigBytes = std::size_t{64} << 20;

Result<json> read_object(const fs::path& path) {
  return read_optional_object(path.string(), kMostConfigBytes);
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

/// BOS, EOS and padding, where neither the post-processor nor an earlier file said which they are.
void apply_token_names(const json& config, Vocabulary& vocabulary) {
  if (!vocabulary.bos) vocabulary.bos = named_token(config, "bos_token", vocabulary);
  if (!vocabulary.eos) vocabulary.eos = named_token(config, "eos_token", vocabulary);
  if (!vocabulary.padding) vocabulary.padding = named_token(config, "pad_token", vocabulary);
}

Status apply_tokenizer_config(const json& config, AddSpecialRule rule, Vocabulary& vocabulary) {
  const std::optional<TokenId> eos = named_token(config, "eos_token", vocabulary);
  if (eos && vocabulary.eos && vocabulary.eos != eos) {
    vocabulary.more_eos.push_back(*eos);  // the post-processor's is the one that is added
  }
  apply_token_names(config, vocabulary);
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

Status apply_generation_config(const GenerationConfig& config, Vocabulary& vocabulary) {
  for (const std::int64_t id : config.eos_token_ids) {
    if (id < 0 || id >= std::ssize(vocabulary.tokens))
      return error("{}: eos_token_id: {} is not the id of a token", config.eos_origin, id);
    vocabulary.more_eos.push_back(static_cast<TokenId>(id));
  }
  return {};
}

/// Where there is a file for the template alone, it wins over the tokenizer's configuration; the .json one is
/// of multimodal models, whose tokenizer may have none.
Status apply_template_files(const fs::path& folder, Vocabulary& vocabulary) {
  const fs::path template_path = folder / "chat_template.jinja";
  std::error_code ignored;
  if (fs::exists(template_path, ignored)) {
    EIDER_TRY(const MappedFile file, MappedFile::open(template_path.string()));
    vocabulary.chat_template.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  } else if (vocabulary.chat_template.empty()) {
    const fs::path json_path = folder / "chat_template.json";
    EIDER_TRY(const json object, read_object(json_path));
    EIDER_TRY(vocabulary.chat_template, read_chat_template(object).context(json_path.string()));
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

  EIDER_TRY(const json map, read_object(folder / "special_tokens_map.json"));
  apply_token_names(map, vocabulary);

  EIDER_TRY(const GenerationConfig generation, read_generation_config(folder.string()));
  EIDER_TRY_STATUS(apply_generation_config(generation, vocabulary));
  EIDER_TRY_STATUS(apply_template_files(folder, vocabulary));
  return vocabulary;
}

}  // namespace eider
