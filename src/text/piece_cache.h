// PieceCache: the ids of short pieces that one call has encoded already, for words repeat. Kept to one call,
// so that encoding needs no lock and no bound on how long an entry lives.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token_id.h"

namespace eider {

class PieceCache {
 public:
  /// Appends the ids of `piece`, those that `encode` appended when it was met first. Pieces are kept as
  /// views.
  template <class Encode>
  void append(std::string_view piece, std::vector<TokenId>& ids, Encode encode) {
    if (piece.size() > kLongest) return encode(piece);
    if (const auto found = emitted_.find(piece); found != emitted_.end()) {
      const auto [begin, count] = found->second;
      for (std::size_t i = begin; i < begin + count; ++i) ids.push_back(ids[i]);
      return;
    }
    const std::size_t begin = ids.size();
    encode(piece);
    if (emitted_.size() < kMost) emitted_.emplace(piece, Emitted{begin, ids.size() - begin});
  }

 private:
  // English words repeat, long pieces do not.
  static constexpr std::size_t kLongest = 32;  // bytes
  static constexpr std::size_t kMost = std::size_t{1} << 16;

  // Where a piece's ids stand in the output.
  struct Emitted {
    std::size_t begin;
    std::size_t count;
  };
  std::unordered_map<std::string_view, Emitted> emitted_;
};

}  // namespace eider
