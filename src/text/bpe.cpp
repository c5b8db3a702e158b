#include "text/bpe.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/piece_cache.h"
#include "text/utf8.h"

namespace eider {

namespace {

Result<PreTokenizer> make_pre_tokenizer(const Vocabulary& vocabulary) {
  if (vocabulary.piece_rules) return PreTokenizer::create(*vocabulary.piece_rules);
  if (vocabulary.model == "bpe") return PreTokenizer::create({});
  return PreTokenizer::named(vocabulary.pre_tokenizer);
}

}  // namespace

Result<Bpe> Bpe::create(const Vocabulary& vocabulary, const std::vector<std::string>& token_bytes) {
  EIDER_TRY(PreTokenizer pre_tokenizer, make_pre_tokenizer(vocabulary));
  const TokenIndex index = index_tokens(vocabulary);
  EIDER_TRY(MergeTable merges, MergeTable::create(vocabulary, index));
  Bpe result(std::move(pre_tokenizer), std::move(merges), WordCuts(vocabulary.tokens));
  result.byte_level_ = vocabulary.model == "gpt2";
  result.fuse_unknown_ = vocabulary.fuse_unknown;
  result.unknown_ = vocabulary.unknown.value_or(kNoToken);
  if (result.byte_level_) {
    for (std::size_t byte = 0; byte < result.byte_ids_.size(); ++byte)
      result.byte_ids_[byte] = find_token(index, byte_to_alphabet(static_cast<std::uint8_t>(byte)));
  } else {
    result.read_characters(vocabulary);
  }
  if (vocabulary.ignore_merges || result.pre_tokenizer_.ignores_merges()) {
    for (std::size_t i = 0; i < token_bytes.size(); ++i) {
      if (vocabulary.type(static_cast<TokenId>(i)) != TokenType::kNormal) continue;
      const std::string& spelling = result.byte_level_ ? token_bytes[i] : vocabulary.tokens[i];
      result.whole_pieces_.try_emplace(spelling, static_cast<TokenId>(i));
    }
  }
  return result;
}

void Bpe::read_characters(const Vocabulary& vocabulary) {
  byte_ids_.fill(kNoToken);
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view token = vocabulary.tokens[i];
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::kByte) {
      if (const auto byte = vocabulary.byte(id)) byte_ids_[*byte] = id;
    } else if (type != TokenType::kControl && !token.empty()) {
      const Utf8Character character = first_utf8(token);
      if (character.status == Utf8Status::kComplete && character.length == token.size())
        characters_.try_emplace(character.code_point, id);
    }
  }
}

void Bpe::encode(std::string_view text, bool at_start, std::vector<TokenId>& ids) const {
  PieceCache cache;
  SymbolList symbols;
  const auto encode_merged = [&](std::string_view piece) { encode_piece(piece, symbols, ids); };
  const auto encode = [&](std::string_view piece) {
    while (!piece.empty()) {
      // Byte-level pieces are words already, and tokens taken whole may stand where no merge leads.
      const bool cut = !byte_level_ && whole_pieces_.empty();
      const std::string_view word = (cut ? cuts_.first_word(piece) : piece).substr(0, kMaxMergeBytes);
      cache.append(word, ids, encode_merged);
      piece.remove_prefix(word.size());
    }
  };
  pre_tokenizer_.split(text, encode, at_start);
}

void Bpe::encode_piece(std::string_view piece, SymbolList& symbols, std::vector<TokenId>& ids) const {
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids.push_back(whole->second);
    return;
  }
  symbols.clear();
  if (byte_level_) {
    append_bytes(piece, symbols);
  } else {
    append_characters(piece, symbols);
  }
  symbols.merge([this](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
  symbols.for_each([&](const Symbol& symbol) {
    const TokenId id = symbol.id == kNoToken ? unknown_ : symbol.id;
    if (id != kNoToken) ids.push_back(id);
  });
}

void Bpe::append_bytes(std::string_view piece, SymbolList& symbols) const {
  for (const char byte : piece) symbols.append(1, byte_ids_[static_cast<std::uint8_t>(byte)]);
}

void Bpe::append_characters(std::string_view piece, SymbolList& symbols) const {
  bool after_unknown = false;
  while (!piece.empty()) {
    const Utf8Character character = first_utf8(piece);
    const bool valid = character.status == Utf8Status::kComplete;
    const std::string_view bytes = piece.substr(0, valid ? character.length : 1);
    piece.remove_prefix(bytes.size());
    const auto found = valid ? characters_.find(character.code_point) : characters_.end();
    const bool has_byte_tokens = std::ranges::all_of(
        bytes, [&](char byte) { return byte_ids_[static_cast<std::uint8_t>(byte)] != kNoToken; });
    const bool unknown = found == characters_.end() && !has_byte_tokens;
    if (found != characters_.end()) {
      symbols.append(static_cast<std::uint32_t>(bytes.size()), found->second);
    } else if (has_byte_tokens) {
      append_bytes(bytes, symbols);
    } else if (!(after_unknown && fuse_unknown_)) {
      symbols.append(static_cast<std::uint32_t>(bytes.size()), kNoToken);
    }
    after_unknown = unknown;
  }
}

}  // namespace eider
