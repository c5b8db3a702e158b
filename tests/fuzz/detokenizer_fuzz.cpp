// Any bytes as tokens: what comes out is valid UTF-8 at every step, and equal to what the whole text would
// give. The same bytes as text: encoding loses none of them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/text/small_vocabulary.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

const eider::Tokenizer& byte_tokenizer() {
  static const eider::Tokenizer tokenizer = [] {
    auto vocabulary = eider::byte_level_vocabulary({"a b", "\xC4\xA0 ab", "\xC3\x83 \xC2\xA9"}, "llama-bpe");
    eider::add_token(vocabulary, "<|end|>", eider::TokenType::kControl);
    eider::add_token(vocabulary, "\n\n", eider::TokenType::kUserDefined);
    return eider::Tokenizer::create(std::move(vocabulary)).value();
  }();
  return tokenizer;
}

void check_stream(std::string_view bytes) {
  eider::Detokenizer detokenizer(byte_tokenizer());
  std::string text;
  for (const char byte : bytes) {
    const std::string chunk = detokenizer.push(static_cast<std::uint8_t>(byte));
    require(eider::is_valid_utf8(chunk));
    text += chunk;
  }
  const std::string tail = detokenizer.finish();
  require(eider::is_valid_utf8(tail));
  text += tail;
  if (eider::is_valid_utf8(bytes)) require(text == bytes);
}

void check_round_trip(std::string_view text) {
  std::string back;
  for (const eider::TokenId id :
       byte_tokenizer().encode(text, {.add_special = false, .parse_special = false})) {
    back += byte_tokenizer().bytes(id);
  }
  require(back == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_stream(bytes);
  check_round_trip(bytes);
  return 0;
}
