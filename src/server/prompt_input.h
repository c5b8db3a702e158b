// Prompts that are given as text or as token ids, as completions and embeddings take them.
#pragma once

#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "server/context.h"
#include "server/fields.h"

namespace eider::server {

/// "prompt" or "input": a string, token ids, or an array of at most `most` of either; each as ids, none of
/// them empty.
std::vector<std::vector<TokenId>> read_prompts(Fields& fields, std::string_view key, const Context& context,
                                               std::size_t most);
/// An array of ids of the vocabulary.
std::vector<TokenId> read_token_ids(Fields& fields, std::string_view key, const Json& ids,
                                    const Tokenizer& tokenizer);

}  // namespace eider::server
