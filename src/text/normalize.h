// Unicode normalisation of text before it is cut into pieces.
#pragma once

#include <string>
#include <string_view>

namespace eider {

/// `text` in NFC: itself where that changes nothing, else a view of `storage`, which is overwritten. Bytes
/// that are not UTF-8 stay where they are, and nothing composes across them.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

}  // namespace eider
