#include "tools/chat_prompt.h"

#include <optional>

namespace eider {

Result<std::string> render_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                const nlohmann::ordered_json& variables) {
  const auto spelling = [&](const std::optional<TokenId>& id) {
    return id ? std::string(tokenizer.piece(*id)) : std::string();
  };
  nlohmann::ordered_json all = {{"add_generation_prompt", true},
                                {"bos_token", spelling(tokenizer.vocabulary().bos)},
                                {"eos_token", spelling(tokenizer.vocabulary().eos)}};
  all.update(variables);
  return chat_template.render(all);
}

}  // namespace eider
