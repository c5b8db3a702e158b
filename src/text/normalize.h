// Normalizer: brings text into the form that tokens are spelled in, before it is cut into pieces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/character_map.h"
#include "text/regex.h"
#include "text/vocabulary.h"

namespace eider {

/// `text` in NFC: itself where that changes nothing, else a view of `storage`, which is overwritten. Bytes
/// that are not UTF-8 stay where they are, and nothing composes across them.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

/// The steps of a vocabulary, one after the other. Bytes that are not UTF-8 stay where they are.
class Normalizer {
 public:
  /// A pattern that does not compile, a character map that is none, and replacements that could make a text
  /// very much longer are errors.
  static Result<Normalizer> create(std::vector<NormalizerStep> steps);

  /// `text` itself where nothing changes it, else a view of `storage`, which is overwritten.
  /// `continues_text`: nothing is prepended.
  std::string_view apply(std::string_view text, std::string& storage, bool continues_text = false) const;

 private:
  // A step with what is made of it once.
  struct Prepared {
    NormalizerStep step;
    std::optional<Regex> pattern;
    std::optional<CharacterMap> map;
  };

  explicit Normalizer(std::vector<Prepared> steps) : steps_(std::move(steps)) {}
  static std::string_view apply(const Prepared& prepared, std::string_view text, std::string& storage);

  std::vector<Prepared> steps_;
};

}  // namespace eider
