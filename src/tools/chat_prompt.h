// ChatPrompt: conversations in the words of a chat template, which is the model's own or people's, with the
// variables that every template may ask for and those that people set.
#pragma once

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "tools/cli_fwd.h"

namespace eider {

struct TemplateFlags {
  std::optional<std::string> file;  ///< a template in place of the model's own
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
};

/// --chat-template-file, --template-args
void add_template_flags(CLI::App& command, TemplateFlags& flags, const std::string& group);

class ChatPrompt {
 public:
  /// Fails where neither the flags nor the model at `model_path` bring a template, and where it is no Jinja.
  static Result<ChatPrompt> create(const TemplateFlags& flags, const Tokenizer& tokenizer,
                                   const std::string& model_path);

  /// The prompt for `conversation`, an object of messages and what belongs to them (tools). Beside it the
  /// template sees bos_token, eos_token and add_generation_prompt = true; --template-args may set or change
  /// any variable. strftime_now() tells SOURCE_DATE_EPOCH in UTC, else the time when this object was made:
  /// a long chat keeps its beginning.
  /// `variables` come last, and may change any of these.
  Result<std::string> render(
      const nlohmann::ordered_json& conversation,
      const nlohmann::ordered_json& variables = nlohmann::ordered_json::object()) const;

 private:
  ChatPrompt(ChatTemplate chat_template, const Tokenizer& tokenizer, nlohmann::ordered_json variables,
             std::tm now);

  ChatTemplate chat_template_;
  nlohmann::ordered_json tokens_;     // bos_token, eos_token, add_generation_prompt
  nlohmann::ordered_json variables_;  // of --template-args
  std::tm now_;
};

}  // namespace eider
