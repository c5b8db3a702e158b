// SpaceCleaner: drops the spaces that English does not have before punctuation and contractions, as models'
// configurations ask for with clean_up_tokenization_spaces. Of a stream, without waiting for its end.
#pragma once

#include <string>
#include <string_view>

namespace eider {

class SpaceCleaner {
 public:
  /// What is certain once `text`, whole characters, has come too.
  std::string push(std::string_view text);
  /// What was held back.
  std::string finish();

 private:
  std::string held_;
};

}  // namespace eider
