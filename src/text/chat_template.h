// ChatTemplate: renders messages to the prompt a model was trained on, with the Jinja template of its
// checkpoint. Templates are untrusted: time, memory and recursion are bounded.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

class ChatTemplate {
 public:
  /// Errors name line, column and cause.
  static Result<ChatTemplate> parse(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  struct Options {
    std::optional<std::tm> now;  ///< what strftime_now() tells; absent: the local time
  };

  /// `variables`: an object of template variables: messages, tools, add_generation_prompt, bos_token,
  /// eos_token, ... (key order kept, integers and floats told apart). Environment as transformers sets it:
  /// trim_blocks, lstrip_blocks, loop controls, lenient undefined, tojson as json.dumps(ensure_ascii=False).
  /// Variables that are JSON null are none; those that are absent are undefined. Safe to call from many
  /// threads.
  Result<std::string> render(const nlohmann::ordered_json& variables, const Options& options) const;
  Result<std::string> render(const nlohmann::ordered_json& variables) const {
    return render(variables, Options());
  }

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eider
