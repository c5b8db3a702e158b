#include "tools/chat_prompt.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "text/json_text.h"
#include "tools/flags.h"
#include "tools/input.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;

/// The time that strftime_now() tells.
Result<std::tm> told_time() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  std::tm result{};
  if (epoch == nullptr || *epoch == '\0') {
    const std::time_t now = std::time(nullptr);
    localtime_r(&now, &result);
    return result;
  }
  const std::string_view text(epoch);
  std::int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const auto time = static_cast<std::time_t>(seconds);
  if (problem != std::errc{} || end != text.data() + text.size() || gmtime_r(&time, &result) == nullptr)
    return error("SOURCE_DATE_EPOCH: '{}' is not a number of seconds", text);
  return result;
}

}  // namespace

void add_template_flags(CLI::App& command, TemplateFlags& flags, const std::string& group) {
  add_text_flag(command, "--chat-template-file", "PATH", flags.file,
                "A Jinja template in place of the model's own", group);
  const auto read_variables = [&flags](const std::string& text) -> Status {
    Json variables = parse_ordered_json(text);
    if (!variables.is_object()) return error("a JSON object");
    flags.variables = std::move(variables);
    return {};
  };
  add_value_flag(command, "--template-args", "JSON", read_variables,
                 "An object of variables for the chat template; sets or changes any", group);
}

Result<ChatPrompt> ChatPrompt::create(const TemplateFlags& flags, const Tokenizer& tokenizer,
                                      const std::string& model_path) {
  std::string source = tokenizer.vocabulary().chat_template;
  if (flags.file) {
    EIDER_TRY(source, read_file(*flags.file));
  } else if (source.empty()) {
    return error("{}: has no chat template; give one with --chat-template-file", model_path);
  }
  EIDER_TRY(ChatTemplate chat_template,
            ChatTemplate::parse(source).context(flags.file ? *flags.file : model_path));
  EIDER_TRY(const std::tm now, told_time());
  return ChatPrompt(std::move(chat_template), tokenizer, flags.variables, now);
}

ChatPrompt::ChatPrompt(ChatTemplate chat_template, const Tokenizer& tokenizer, Json variables, std::tm now)
    : chat_template_(std::move(chat_template)), variables_(std::move(variables)), now_(now) {
  const auto spelling = [&](const std::optional<TokenId>& id) {
    return id ? std::string(tokenizer.piece(*id)) : std::string();
  };
  tokens_ = {{"add_generation_prompt", true},
             {"bos_token", spelling(tokenizer.vocabulary().bos)},
             {"eos_token", spelling(tokenizer.vocabulary().eos)}};
}

Result<std::string> ChatPrompt::render(const Json& conversation, const Json& variables) const {
  Json all = conversation;
  all.update(tokens_);
  all.update(variables_);
  all.update(variables);
  return chat_template_.render(all, {.now = now_});
}

}  // namespace eider
