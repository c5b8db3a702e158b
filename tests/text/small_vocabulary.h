// Vocabularies small enough to reason about, for the tests of this folder.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace eider {

inline Tokenizer make_tokenizer(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message();
  return std::move(tokenizer).value();
}

inline TokenId add_token(Vocabulary& vocabulary, std::string text, TokenType type, double score = 0) {
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.types.push_back(type);
  if (vocabulary.model == "llama" || vocabulary.model == "unigram") vocabulary.scores.push_back(score);
  return static_cast<TokenId>(vocabulary.tokens.size() - 1);
}

/// Byte b has id b; then the results of `merges` ("left right", in the byte alphabet) in order from 256.
inline Vocabulary byte_level_vocabulary(std::vector<std::string> merges,
                                        std::string pre_tokenizer = "gpt-2") {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre_tokenizer = std::move(pre_tokenizer);
  for (int byte = 0; byte < 256; ++byte) {
    add_token(vocabulary, byte_to_alphabet(static_cast<std::uint8_t>(byte)), TokenType::kNormal);
  }
  for (const std::string& merge : merges) {
    const std::size_t space = merge.find(' ', 1);
    add_token(vocabulary, merge.substr(0, space) + merge.substr(space + 1), TokenType::kNormal);
  }
  vocabulary.merges = std::move(merges);
  return vocabulary;
}

/// <unk> 0, <s> 1, </s> 2, byte b at 3 + b, then `pieces` from 259, each with a score below the one before.
inline Vocabulary sentencepiece_vocabulary(const std::vector<std::string>& pieces) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.unknown = add_token(vocabulary, "<unk>", TokenType::kUnknown);
  vocabulary.bos = add_token(vocabulary, "<s>", TokenType::kControl);
  vocabulary.eos = add_token(vocabulary, "</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte)
    add_token(vocabulary, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  double score = 0;
  for (const std::string& piece : pieces) add_token(vocabulary, piece, TokenType::kNormal, --score);
  return vocabulary;
}

}  // namespace eider
