#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace eider {

namespace {

constexpr bool spells_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct Alphabet {
  static constexpr char32_t kFirstShifted = 0x100;

  std::array<char32_t, 256> of_byte{};
  std::array<std::uint8_t, 68> shifted{};  // [code point - kFirstShifted] -> byte

  constexpr Alphabet() {
    std::size_t count = 0;
    for (int byte = 0; byte < 256; ++byte) {
      if (spells_itself(byte)) {
        of_byte[static_cast<std::size_t>(byte)] = static_cast<char32_t>(byte);
      } else {
        of_byte[static_cast<std::size_t>(byte)] = kFirstShifted + static_cast<char32_t>(count);
        shifted[count++] = static_cast<std::uint8_t>(byte);
      }
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::string byte_to_alphabet(std::uint8_t byte) {
  std::string character;
  append_utf8(character, kAlphabet.of_byte[byte]);
  return character;
}

std::string alphabet_to_bytes(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Character character = first_utf8(spelling);
    const char32_t code_point = character.code_point;
    if (character.status == Utf8Status::kComplete && code_point < 0x100 &&
        spells_itself(static_cast<int>(code_point))) {
      bytes.push_back(static_cast<char>(code_point));
    } else if (code_point >= Alphabet::kFirstShifted &&
               code_point < Alphabet::kFirstShifted + kAlphabet.shifted.size()) {
      bytes.push_back(static_cast<char>(kAlphabet.shifted[code_point - Alphabet::kFirstShifted]));
    } else {
      bytes.append(spelling.substr(0, character.length));
    }
    spelling.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace eider
