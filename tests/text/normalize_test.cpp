#include "text/normalize.h"

#include <gtest/gtest.h>

namespace eider {
namespace {

using Kind = NormalizerStep::Kind;

std::string apply(std::vector<NormalizerStep> steps, std::string_view text, bool continues_text = false) {
  const auto normalizer = Normalizer::create(std::move(steps));
  EXPECT_TRUE(normalizer.ok()) << normalizer.error().message();
  std::string storage;
  return std::string(normalizer->apply(text, storage, continues_text));
}

TEST(Normalizer, UnicodesFormsLeaveInvalidBytesWhereTheyAre) {
  const std::string text = "e\xCC\x81\xFF\xEF\xAC\x81\xC3\xA9";  // e U+0301, a stray byte, U+FB01, U+00E9
  EXPECT_EQ(apply({{.kind = Kind::kNfc}}, text), "\xC3\xA9\xFF\xEF\xAC\x81\xC3\xA9");
  EXPECT_EQ(apply({{.kind = Kind::kNfd}}, text),
            "e\xCC\x81\xFF\xEF\xAC\x81"
            "e\xCC\x81");
  EXPECT_EQ(apply({{.kind = Kind::kNfkc}}, text),
            "\xC3\xA9\xFF"
            "fi\xC3\xA9");
  EXPECT_EQ(apply({{.kind = Kind::kNfkd}}, text),
            "e\xCC\x81\xFF"
            "fie\xCC\x81");
}

TEST(Normalizer, LowercaseAndAccents) {
  EXPECT_EQ(apply({{.kind = Kind::kLowercase}}, "A\xC3\x89\xC4\xB0\xFF"), "a\xC3\xA9i\xCC\x87\xFF");
  EXPECT_EQ(apply({{.kind = Kind::kNfd}, {.kind = Kind::kStripAccents}}, "\xC3\xA9\xC3\x9F"), "e\xC3\x9F");
}

TEST(Normalizer, StripPrependAndReplace) {
  const std::string padded = " \xE3\x80\x80 a b\n";
  EXPECT_EQ(apply({{.kind = Kind::kStrip}}, padded), "a b");
  EXPECT_EQ(apply({{.kind = Kind::kStrip, .at_start = false}}, padded), " \xE3\x80\x80 a b");
  EXPECT_EQ(apply({{.kind = Kind::kStrip}, {.kind = Kind::kPrepend, .content = "_"}}, " a"), "_a");
  EXPECT_EQ(apply({{.kind = Kind::kStrip}, {.kind = Kind::kPrepend, .content = "_"}}, "  "), "");
  EXPECT_EQ(apply({{.kind = Kind::kPrepend, .content = "_"}}, "a", true), "a");
  EXPECT_EQ(apply({{.kind = Kind::kReplace, .pattern = "aa", .content = "b"}}, "aaa"), "ba");
  EXPECT_EQ(apply({{.kind = Kind::kReplaceMatches, .pattern = " {2,}", .content = " "}}, "a   b\xFF  c "),
            "a b\xFF c ");
}

TEST(Normalizer, RefusesWhatCouldMakeATextVeryMuchLonger) {
  const NormalizerStep step{.kind = Kind::kReplace, .pattern = "a", .content = std::string(100, 'a')};
  EXPECT_TRUE(Normalizer::create({step}).ok());
  EXPECT_EQ(Normalizer::create({step, step}).error().message(),
            "the normalizer could make a text more than 256 times as long");
  EXPECT_FALSE(Normalizer::create({{.kind = Kind::kPrepend, .content = std::string(1000, 'a')}}).ok());
  EXPECT_FALSE(Normalizer::create(std::vector<NormalizerStep>(100)).ok());
}

TEST(Normalizer, RefusesBrokenPatternsAndCharacterMaps) {
  EXPECT_FALSE(Normalizer::create({{.kind = Kind::kReplaceMatches, .pattern = "("}}).ok());
  for (const std::string& map : {std::string(), std::string("\x01"), std::string("\x04\0\0\0ab", 6),
                                 std::string("\x02\0\0\0abcd", 8), std::string(4, '\0')})
    EXPECT_FALSE(Normalizer::create({{.kind = Kind::kCharacterMap, .content = map}}).ok());
  // A trie whose units lead outside it has no matches.
  const std::string wild = std::string("\x08\0\0\0", 4) + std::string(8, '\xFF') + "x";
  EXPECT_EQ(apply({{.kind = Kind::kCharacterMap, .content = wild}}, "a\xFF"), "a\xFF");
}

}  // namespace
}  // namespace eider
