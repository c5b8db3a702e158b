// A tokenizer.json of any bytes; where it is one, text through it and back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "weights/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto vocabulary = eider::parse_tokenizer_json(std::as_bytes(std::span(data, size)));
  if (!vocabulary.ok()) return 0;
  const auto tokenizer = eider::Tokenizer::create(std::move(vocabulary).value());
  if (!tokenizer.ok()) return 0;
  constexpr std::string_view kText =
      "<s>a ab  abc12\n\xC3\xA9\xCC\x81 [X] \xE2\x96\x81\xF0\x9F\x98\x80\xFF</s>";
  eider::Detokenizer detokenizer(*tokenizer, true, eider::Detokenizer::ControlTokens::kSpelled);
  for (const eider::TokenId id : tokenizer->encode(kText)) {
    if (!tokenizer->vocabulary().contains(id)) std::abort();
    detokenizer.push(id);
  }
  return 0;
}
