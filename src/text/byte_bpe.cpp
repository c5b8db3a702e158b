#include "text/byte_bpe.h"

#include "text/byte_alphabet.h"
#include "text/normalize.h"

namespace eider {

namespace {

// English words repeat, long pieces do not.
constexpr std::size_t kMaxCachedPiece = 32;
constexpr std::size_t kMaxCachedPieces = std::size_t{1} << 16;

using TokenIndex = std::unordered_map<std::string_view, TokenId>;

// Spelling to id, of the tokens that text can be merged into. Of several with one spelling the first id
// stands for it.
TokenIndex index_tokens(const Vocabulary& vocabulary) {
  TokenIndex index;
  index.reserve(vocabulary.tokens.size());
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.type(static_cast<TokenId>(i)) == TokenType::kControl) continue;
    index.try_emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
  }
  return index;
}

TokenId find_token(const TokenIndex& index, std::string_view spelling) {
  const auto found = index.find(spelling);
  return found == index.end() ? kNoToken : found->second;
}

}  // namespace

Result<ByteBpe> ByteBpe::create(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes) {
  EIDER_TRY(PreTokenizer pre_tokenizer, PreTokenizer::named(vocabulary.pre_tokenizer));
  ByteBpe result(std::move(pre_tokenizer));
  result.unknown_ = vocabulary.unknown.value_or(kNoToken);
  EIDER_TRY_STATUS(result.add_merges(vocabulary));
  if (result.pre_tokenizer_.ignores_merges()) {
    for (std::size_t i = 0; i < token_bytes.size(); ++i) {
      if (vocabulary.type(static_cast<TokenId>(i)) != TokenType::kNormal) continue;
      result.whole_pieces_.try_emplace(token_bytes[i], static_cast<TokenId>(i));
    }
  }
  return result;
}

Status ByteBpe::add_merges(const Vocabulary& vocabulary) {
  const TokenIndex index = index_tokens(vocabulary);
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = find_token(index, byte_to_alphabet(static_cast<std::uint8_t>(byte)));
  }
  joins_.reserve(vocabulary.merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string_view merge = vocabulary.merges[rank];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return error("merge {} ('{}') is not two pieces", rank, merge);
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const TokenId left_id = find_token(index, left);
    const TokenId right_id = find_token(index, right);
    const TokenId id = find_token(index, joined);
    if (left_id == kNoToken || right_id == kNoToken || id == kNoToken) {
      return error("merge {} ('{}') names a piece that is no token", rank, merge);
    }
    joins_.try_emplace(pair(left_id, right_id), Join{static_cast<std::uint32_t>(rank), id});
  }
  return {};
}

void ByteBpe::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::string normalized;
  if (pre_tokenizer_.normalizes_nfc()) text = normalize_nfc(text, normalized);
  PieceCache cache;
  SymbolList symbols;
  pre_tokenizer_.split(text, [&](std::string_view piece) {
    if (piece.size() > kMaxCachedPiece) {
      for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kMaxMergeBytes))) {
        encode_piece(piece.substr(0, kMaxMergeBytes), symbols, ids);
      }
      return;
    }
    if (const auto found = cache.find(piece); found != cache.end()) {
      const auto [begin, count] = found->second;
      for (std::size_t i = begin; i < begin + count; ++i) ids.push_back(ids[i]);
      return;
    }
    const std::size_t begin = ids.size();
    encode_piece(piece, symbols, ids);
    if (cache.size() < kMaxCachedPieces) cache.emplace(piece, Emitted{begin, ids.size() - begin});
  });
}

void ByteBpe::encode_piece(std::string_view piece, SymbolList& symbols, std::vector<TokenId>& ids) const {
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids.push_back(whole->second);
    return;
  }
  symbols.clear();
  for (const char byte : piece) symbols.append(1, byte_ids_[static_cast<std::uint8_t>(byte)]);
  symbols.merge([this](const Symbol& left, const Symbol& right) {
    const auto found = joins_.find(pair(left.id, right.id));
    return found == joins_.end() ? Join{} : found->second;
  });
  symbols.for_each([&](const Symbol& symbol) {
    const TokenId id = symbol.id == kNoToken ? unknown_ : symbol.id;
    if (id != kNoToken) ids.push_back(id);
  });
}

}  // namespace eider
