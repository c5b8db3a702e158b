#include "server/logprobs.h"

namespace eider::server {
namespace {

Json entry(const Tokenizer& tokenizer, const serving::TokenLogprob& token) {
  const std::string text = token_text(tokenizer, token.id);
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", token.logprob}, {"bytes", std::move(bytes)}};
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  const std::string_view bytes = tokenizer.bytes(id);
  return std::string(bytes.empty() ? tokenizer.piece(id) : bytes);
}

Json logprob_entry(const Tokenizer& tokenizer, const serving::Delta& delta) {
  Json top = Json::array();
  for (const serving::TokenLogprob& token : delta.top_logprobs) top.push_back(entry(tokenizer, token));
  Json result = entry(tokenizer, *delta.logprob);
  result["top_logprobs"] = std::move(top);
  return result;
}

}  // namespace eider::server
