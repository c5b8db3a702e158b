// The conformance files beside the repository, read and unpacked, and what tests do with their tokenizers.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace eider::test {

inline const std::filesystem::path kConformance = std::filesystem::path(EIDER_SHARED) / "conformance";

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

/// Whether `packed`, an .xz file, could be unpacked to `path`.
inline bool unpack_xz(const std::filesystem::path& packed, const std::string& path) {
  const std::string command = "xz -dc '" + packed.string() + "' > '" + path + "' 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

/// Every token's text, control tokens too where asked for.
inline std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                          Detokenizer::ControlTokens control = Detokenizer::ControlTokens::kHidden) {
  Detokenizer detokenizer(tokenizer, true, control);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

}  // namespace eider::test
