// Random text and random bytes through every vocabulary at hand and back: nothing is lost but what the
// tokenizer's own normalisation changes. EIDER_ROUND_TRIPS sets how many of each (2000).
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "base/mapped_file.h"
#include "tests/support/conformance.h"
#include "tests/support/temp_dir.h"
#include "text/byte_alphabet.h"
#include "text/normalize.h"
#include "text/sentencepiece_bpe.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"
#include "weights/hf_vocabulary.h"

namespace eider {
namespace {

struct Source {
  const char* path;  // below the conformance folder, without ".xz"
  bool nfc = false;
};

void PrintTo(const Source& source, std::ostream* out) {
  *out << source.path;
}

Result<Tokenizer> load_tokenizer(const std::string& path) {
  if (path.ends_with(".json")) {
    EIDER_TRY(Vocabulary vocabulary, read_hf_vocabulary(path, AddSpecialRule::kPostProcessor));
    return Tokenizer::create(std::move(vocabulary));
  }
  EIDER_TRY(const MappedFile file, MappedFile::open(path));
  EIDER_TRY(const GgufFile gguf, GgufFile::parse(file.bytes()));
  EIDER_TRY(Vocabulary vocabulary, read_vocabulary(gguf));
  return Tokenizer::create(std::move(vocabulary));
}

int round_trips() {
  const char* count = std::getenv("EIDER_ROUND_TRIPS");
  return count != nullptr ? std::atoi(count) : 2000;
}

class Generator {
 public:
  /// Characters of a few blocks mixed, then now and then of all of Unicode.
  std::string text() {
    struct Block {
      char32_t first, last;
    };
    constexpr std::array<Block, 8> kBlocks = {{{0x20, 0x7E},
                                               {0x09, 0x0D},
                                               {0xA0, 0x24F},
                                               {0x300, 0x36F},
                                               {0x900, 0x97F},
                                               {0x4E00, 0x9FFF},
                                               {0xAC00, 0xD7A3},
                                               {0x1, 0x10FFFF}}};
    std::string result;
    const Block first = kBlocks[below(kBlocks.size())];
    for (std::size_t length = below(40); length > 0; --length) {
      const Block block = below(3) == 0 ? kBlocks[below(kBlocks.size())] : first;
      const auto code_point = static_cast<char32_t>(block.first + below(block.last - block.first + 1));
      const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
      append_utf8(result, surrogate ? U' ' : code_point);
    }
    return result;
  }

  std::string bytes() {
    std::string result(below(60), '\0');
    for (char& byte : result) byte = static_cast<char>(below(256));
    return result;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  std::mt19937_64 random_{20};
};

class RoundTrip : public testing::TestWithParam<Source> {
 protected:
  void SetUp() override {
    const std::string packed = (test::kConformance / GetParam().path).string() + ".xz";
    if (!std::filesystem::exists(packed)) GTEST_SKIP() << packed << " is not there";
    const std::string path = folder_.file(std::filesystem::path(GetParam().path).filename().string());
    if (!test::unpack_xz(packed, path)) GTEST_SKIP() << "no xz program to unpack " << packed;
    auto tokenizer = load_tokenizer(path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message();
    tokenizer_.emplace(std::move(tokenizer).value());
    const Vocabulary& vocabulary = tokenizer_->vocabulary();
    for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      const std::string bytes = alphabet_to_bytes(vocabulary.tokens[i]);
      if (vocabulary.type(static_cast<TokenId>(i)) == TokenType::kNormal && bytes.size() == 1)
        spellable_[static_cast<std::uint8_t>(bytes[0])] = true;
    }
  }

  std::string there_and_back(const std::string& text) const {
    std::string result;
    for (const TokenId id : tokenizer_->encode(text, {.add_special = false})) result += tokenizer_->bytes(id);
    if (tokenizer_->strips_leading_space() && result.starts_with(' ')) return result.substr(1);
    return result;
  }

  /// Without the bytes that a byte-level vocabulary has no token for; most of them occur in no UTF-8.
  std::string spellable(std::string text) const {
    if (tokenizer_->vocabulary().model != "gpt2") return text;
    std::erase_if(text, [&](char byte) { return !spellable_[static_cast<std::uint8_t>(byte)]; });
    return text;
  }

  /// What must come back: SentencePiece cannot tell U+2581 from a space.
  std::string normalized(const std::string& text) const {
    std::string storage;
    std::string result = GetParam().nfc ? std::string(normalize_nfc(text, storage)) : text;
    if (tokenizer_->vocabulary().model == "gpt2") return result;
    const auto spaces = Normalizer::create({{.kind = NormalizerStep::Kind::kReplace,
                                             .pattern = std::string(kSentencePieceSpace),
                                             .content = " "}});
    return std::string(spaces->apply(result, storage));
  }

  const test::TempDir folder_;
  std::optional<Tokenizer> tokenizer_;
  std::array<bool, 256> spellable_{};
};

TEST_P(RoundTrip, LosesNothing) {
  Generator generator;
  for (int i = 0; i < round_trips(); ++i) {
    for (const std::string& text : {spellable(generator.text()), spellable(generator.bytes())})
      ASSERT_EQ(there_and_back(text), normalized(text)) << "after " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Vocabularies, RoundTrip,
    testing::Values(Source{"tokenizers/qwen3/tokenizer.json", true},
                    Source{"tokenizers/deepseek_v3/tokenizer.json"},
                    Source{"tokenizers/llama3_1/tokenizer.json"}, Source{"tokenizers/gemma3/tokenizer.json"},
                    Source{"tokenizers/llama2/tokenizer.json"}, Source{"gguf_vocab/gpt-2.gguf"},
                    Source{"gguf_vocab/falcon.gguf"}, Source{"gguf_vocab/starcoder.gguf"},
                    Source{"gguf_vocab/refact.gguf"}, Source{"gguf_vocab/deepseek-llm.gguf"},
                    Source{"gguf_vocab/deepseek-coder.gguf"}, Source{"gguf_vocab/llama-spm.gguf"},
                    Source{"gguf_vocab/phi-3.gguf"}));

}  // namespace
}  // namespace eider
