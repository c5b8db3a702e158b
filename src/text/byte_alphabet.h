// The alphabet in which byte-level BPE vocabularies spell bytes (GPT-2's bytes_to_unicode): printable Latin-1
// bytes are the character of the same value, the other 68 bytes are U+0100, U+0101, ... in increasing order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eider {

/// The alphabet's character for `byte`, as UTF-8.
std::string byte_to_alphabet(std::uint8_t byte);

/// Bytes that `spelling` stands for. What is not of the alphabet stays as it is (tokens added in plain text).
std::string alphabet_to_bytes(std::string_view spelling);

}  // namespace eider
