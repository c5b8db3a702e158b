// A mask that leaves a model no tokens but those of which JSON objects are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/thinking.h"
#include "serving/request.h"
#include "text/tokenizer.h"

namespace eider::server {

/// A vocabulary, sorted for the masks' questions. Made once, in some milliseconds; used by any thread.
/// `vocab_size`: rows of the model's logits.
class JsonTokens;
std::shared_ptr<const JsonTokens> make_json_tokens(const Tokenizer& tokenizer, std::int64_t vocab_size);

/// For Request::make_mask: the answer is one JSON object and ends with it. `thought`: the format of a thought
/// that comes before it, in which every token may come that does not end the turn; null: none.
std::function<serving::TokenMask(std::int64_t choice)> make_json_mask(
    std::shared_ptr<const JsonTokens> tokens, const ThinkingFormat* thought);

}  // namespace eider::server
