#include "text/sentencepiece_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/piece_cache.h"
#include "text/utf8.h"

namespace eider {

namespace {

// [id] -> place of its score among all scores, the highest first; equal scores share a place.
std::vector<std::uint32_t> rank_scores(const std::vector<double>& scores) {
  std::vector<std::uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  std::vector<std::uint32_t> ranks(scores.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    ranks[order[i]] = ranks[order[i - 1]] + (scores[order[i]] < scores[order[i - 1]] ? 1 : 0);
  }
  return ranks;
}

}  // namespace

Result<SentencePieceBpe> SentencePieceBpe::create(const Vocabulary& vocabulary) {
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    return error("{} scores for {} tokens", vocabulary.scores.size(), vocabulary.tokens.size());
  }
  if (std::ranges::any_of(vocabulary.scores, [](double score) { return std::isnan(score); })) {
    return error("a token's score is not a number");
  }
  SentencePieceBpe result{WordCuts(vocabulary.tokens)};
  result.unknown_ = vocabulary.unknown.value_or(kNoToken);
  result.byte_ids_.fill(kNoToken);
  const std::vector<std::uint32_t> ranks = rank_scores(vocabulary.scores);
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string_view token = vocabulary.tokens[i];
    const auto id = static_cast<TokenId>(i);
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::kByte) {
      if (const auto byte = vocabulary.byte(id)) result.byte_ids_[*byte] = id;
    } else if (type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused) {
      result.pieces_.try_emplace(token, Join{ranks[i], id});
      result.longest_piece_ = std::max(result.longest_piece_, token.size());
    }
  }
  return result;
}

Join SentencePieceBpe::find(std::string_view spelling) const {
  if (spelling.size() > longest_piece_) return {};
  const auto found = pieces_.find(spelling);
  return found == pieces_.end() ? Join{} : found->second;
}

void SentencePieceBpe::encode(std::string_view text, bool /*at_start*/, std::vector<TokenId>& ids) const {
  PieceCache cache;
  SymbolList symbols;
  while (!text.empty()) {
    const std::string_view word = cuts_.first_word(text).substr(0, kMaxMergeBytes);
    cache.append(word, ids, [&](std::string_view piece) { encode_word(piece, symbols, ids); });
    text.remove_prefix(word.size());
  }
}

void SentencePieceBpe::encode_word(std::string_view text, SymbolList& symbols,
                                   std::vector<TokenId>& ids) const {
  symbols.clear();
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character character = first_utf8(rest);
    const std::size_t size = character.status == Utf8Status::kComplete ? character.length : 1;
    symbols.append(static_cast<std::uint32_t>(size), find(rest.substr(0, size)).id);
    rest.remove_prefix(size);
  }
  symbols.merge([&](const Symbol& left, const Symbol& right) {
    return find(text.substr(left.begin, left.size + right.size));
  });
  symbols.for_each([&](const Symbol& symbol) {
    if (symbol.id != kNoToken) {
      ids.push_back(symbol.id);
      return;
    }
    for (const char byte : text.substr(symbol.begin, symbol.size)) {
      const TokenId byte_id = byte_ids_[static_cast<std::uint8_t>(byte)];
      const TokenId id = byte_id == kNoToken ? unknown_ : byte_id;
      if (id != kNoToken) ids.push_back(id);
    }
  });
}

}  // namespace eider
