// Prompts that are given as text or as token ids, as completions and embeddings take them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "server/context.h"
#include "server/fields.h"

namespace eider::server {

struct Prompt {
  std::vector<TokenId> ids;  ///< not empty
  std::string text;          ///< as it was given; of ids: what they stand for
};

/// "prompt" or "input": a string, token ids, or an array of at most `most` of either.
std::vector<Prompt> read_prompts(Fields& fields, std::string_view key, const Context& context,
                                 std::size_t most);
/// An array of ids of the vocabulary.
std::vector<TokenId> read_token_ids(Fields& fields, std::string_view key, const Json& ids,
                                    const Tokenizer& tokenizer);
/// What ids stand for, control tokens as they are spelled.
std::string text_of(std::span<const TokenId> ids, const Tokenizer& tokenizer);

}  // namespace eider::server
