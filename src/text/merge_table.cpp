#include "text/merge_table.h"

#include <bit>
#include <string>

namespace eider {

namespace {

std::uint64_t pair_of(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

// "left right"; a piece may begin with a space.
Result<Merge> parse_merge(std::string_view text, std::size_t rank, const TokenIndex& index) {
  const std::size_t space = text.find(' ', 1);
  if (space == std::string_view::npos) return error("merge {} ('{}') is not two pieces", rank, text);
  const std::string_view left = text.substr(0, space);
  const std::string_view right = text.substr(space + 1);
  const Merge merge{find_token(index, left), find_token(index, right),
                    find_token(index, std::string(left).append(right))};
  if (merge.left == kNoToken || merge.right == kNoToken || merge.joined == kNoToken) {
    return error("merge {} ('{}') names a piece that is no token", rank, text);
  }
  return merge;
}

}  // namespace

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

MergeTable::MergeTable(std::size_t merges)
    : entries_(std::bit_ceil(2 * merges + 1), Entry{kNoPair, Join()}) {}

Result<MergeTable> MergeTable::create(const Vocabulary& vocabulary, const TokenIndex& index) {
  MergeTable table(vocabulary.merges.size() + vocabulary.merge_ids.size());
  std::uint32_t rank = 0;
  for (const std::string& text : vocabulary.merges) {
    EIDER_TRY(const Merge merge, parse_merge(text, rank, index));
    table.add(merge, rank++);
  }
  for (const Merge& merge : vocabulary.merge_ids) table.add(merge, rank++);
  return table;
}

std::size_t MergeTable::first_place(std::uint64_t pair) const {
  pair *= 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(pair ^ (pair >> 32)) & (entries_.size() - 1);
}

void MergeTable::add(const Merge& merge, std::uint32_t rank) {
  const std::uint64_t pair = pair_of(merge.left, merge.right);
  std::size_t place = first_place(pair);
  while (entries_[place].pair != kNoPair) {
    if (entries_[place].pair == pair) return;  // given twice: the earlier one counts
    place = (place + 1) & (entries_.size() - 1);
  }
  entries_[place] = {pair, {rank, merge.joined}};
}

Join MergeTable::find(TokenId left, TokenId right) const {
  const std::uint64_t pair = pair_of(left, right);
  if (pair == kNoPair) return {};
  for (std::size_t place = first_place(pair); entries_[place].pair != kNoPair;
       place = (place + 1) & (entries_.size() - 1)) {
    if (entries_[place].pair == pair) return entries_[place].join;
  }
  return {};
}

}  // namespace eider
