#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/utf8.h"

namespace eider {

namespace {

// What an unknown character costs beyond the worst piece.
constexpr double kUnknownPenalty = 10;

// Longest text that is cut as one: 16 bytes are kept for each of its bytes.
constexpr std::size_t kMaxText = std::size_t{1} << 26;

constexpr std::size_t kLongestPiece = 1024, kMostSpelling = std::size_t{16} << 20;  // bytes

}  // namespace

Result<Unigram> Unigram::create(const Vocabulary& vocabulary) {
  if (vocabulary.scores.size() != vocabulary.tokens.size())
    return error("{} scores for {} tokens", vocabulary.scores.size(), vocabulary.tokens.size());
  EIDER_TRY(PreTokenizer pre_tokenizer,
            PreTokenizer::create(vocabulary.piece_rules.value_or(std::vector<PieceRule>())));
  Unigram result(std::move(pre_tokenizer));
  result.unknown_ = vocabulary.unknown.value_or(kNoToken);
  result.byte_ids_.fill(kNoToken);
  double least = std::numeric_limits<double>::max();
  std::size_t spelling = 0;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string_view token = vocabulary.tokens[i];
    const auto id = static_cast<TokenId>(i);
    const double score = vocabulary.scores[i];
    const TokenType type = vocabulary.type(id);
    if (!std::isfinite(score)) return error("the score of token {} is not a finite number", i);
    if (type == TokenType::kByte) {
      if (const auto byte = vocabulary.byte(id)) result.byte_ids_[*byte] = id;
    }
    if (type != TokenType::kNormal || token.empty()) continue;
    spelling += token.size();
    if (token.size() > kLongestPiece || spelling > kMostSpelling)
      return error("token {} has {} bytes; at most {}, and {} in all, are sensible", i, token.size(),
                   kLongestPiece, kMostSpelling);
    least = std::min(least, score);
    result.add(token, {id, score});
  }
  result.unknown_score_ = vocabulary.least_score.value_or(least) - kUnknownPenalty;
  return result;
}

void Unigram::add(std::string_view spelling, Piece piece) {
  const ByteTrie::Node node = trie_.add(spelling);
  pieces_.resize(trie_.node_count());
  if (pieces_[node].id == kNoToken) pieces_[node] = piece;  // of several of one spelling the first counts
}

void Unigram::encode(std::string_view text, bool at_start, std::vector<TokenId>& ids) const {
  std::vector<Best> best;
  const auto encode = [&](std::string_view piece) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kMaxText)))
      encode_piece(piece.substr(0, kMaxText), best, ids);
  };
  pre_tokenizer_.split(text, encode, at_start);
}

void Unigram::encode_piece(std::string_view text, std::vector<Best>& best, std::vector<TokenId>& ids) const {
  best.assign(text.size() + 1, Best());
  for (std::size_t begin = 0; begin < text.size();) {
    const Utf8Character character = first_utf8(text.substr(begin));
    const std::size_t size = character.status == Utf8Status::kComplete ? character.length : 1;
    extend(text.substr(begin), size, &best[begin]);
    begin += size;
  }
  // From the end to the start, then turned round.
  const std::size_t first = ids.size();
  for (std::size_t end = text.size(); end > 0;) {
    if (best[end].id != kNoToken) {
      ids.push_back(best[end].id);
      end -= best[end].size;
      continue;
    }
    std::size_t begin = end;  // unknown characters beside each other are one unknown piece
    while (begin > 0 && best[begin].id == kNoToken) begin -= best[begin].size;
    append_unknown_backwards(text.substr(begin, end - begin), ids);
    end = begin;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

void Unigram::extend(std::string_view rest, std::size_t character_size, Best* here) const {
  const auto offer = [here](std::size_t size, TokenId id, double score) {
    const double total = here->score + score;
    Best& there = here[size];
    if (there.size == 0 || total > there.score) there = {total, id, static_cast<std::uint32_t>(size)};
  };
  bool has_character = false;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const auto next = trie_.next(node, rest[i]);
    if (!next) break;
    node = *next;
    if (pieces_[node].id == kNoToken) continue;
    offer(i + 1, pieces_[node].id, pieces_[node].score);
    has_character |= i + 1 == character_size;
  }
  if (!has_character) offer(character_size, kNoToken, unknown_score_);
}

void Unigram::append_unknown_backwards(std::string_view text, std::vector<TokenId>& ids) const {
  const auto id_of = [this](char byte) { return byte_ids_[static_cast<std::uint8_t>(byte)]; };
  if (std::ranges::find(text, kNoToken, id_of) == text.end()) {
    for (std::size_t i = text.size(); i-- > 0;) ids.push_back(id_of(text[i]));
  } else if (unknown_ != kNoToken) {
    ids.push_back(unknown_);
  }
}

}  // namespace eider
