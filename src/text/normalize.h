// Unicode normalisation of text before it is cut into pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace eider {

/// `text` in NFC: itself where that changes nothing, else a view of `storage`, which is overwritten. Bytes
/// that are not UTF-8 stay where they are, and nothing composes across them.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

/// The steps of a vocabulary, one after the other.
class Normalizer {
 public:
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  /// As normalize_nfc() returns it: `text` itself or a view of `storage`. `continues_text`: nothing is
  /// prepended.
  std::string_view apply(std::string_view text, std::string& storage, bool continues_text = false) const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace eider
