// Chat prompts: a chat template and a tokenizer's special tokens put together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace eider {

/// Renders `variables` (messages, ...), an object, with what every template may ask for beside them:
/// bos_token, eos_token and add_generation_prompt = true. What `variables` itself says about these counts.
Result<std::string> render_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                const nlohmann::ordered_json& variables);

}  // namespace eider
