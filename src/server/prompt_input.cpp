#include "server/prompt_input.h"

#include <fmt/format.h>

#include <utility>

#include "text/detokenizer.h"

namespace eider::server {

std::vector<TokenId> read_token_ids(Fields& fields, std::string_view key, const Json& ids,
                                    const Tokenizer& tokenizer) {
  const auto count = static_cast<std::int64_t>(tokenizer.vocabulary().tokens.size());
  std::vector<TokenId> result;
  result.reserve(ids.size());
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= count) {
      fields.fail(key, fmt::format("token ids are integers from 0 to {}", count - 1));
      return {};
    }
    result.push_back(id.get<TokenId>());
  }
  return result;
}

std::string text_of(std::span<const TokenId> ids, const Tokenizer& tokenizer) {
  Detokenizer detokenizer(tokenizer, true, Detokenizer::ControlTokens::kSpelled);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

std::vector<Prompt> read_prompts(Fields& fields, std::string_view key, const Context& context,
                                 std::size_t most) {
  fields.require(key);
  const Json* value = fields.value(key);
  if (value == nullptr) return {};
  std::vector<Prompt> prompts;
  const auto add = [&](const Json& item) {
    if (item.is_string()) {
      const auto& text = item.get_ref<const std::string&>();
      prompts.push_back({context.tokenizer->encode(text), text});
    } else if (item.is_array()) {
      std::vector<TokenId> ids = read_token_ids(fields, key, item, *context.tokenizer);
      std::string text = text_of(ids, *context.tokenizer);
      prompts.push_back({std::move(ids), std::move(text)});
    } else {
      fields.fail(key, "must be a string, an array of token ids, or an array of either");
      return;
    }
    if (prompts.back().ids.empty()) fields.fail(key, "is empty");
  };
  const bool is_list = value->is_array() && !value->empty() && !value->front().is_number();
  if (!is_list) {
    add(*value);
  } else if (value->size() > most) {
    fields.fail(key, fmt::format("at most {} are taken at once", most), "unsupported");
  } else {
    for (const Json& item : *value) add(item);
  }
  return prompts;
}

}  // namespace eider::server
