#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/safetensors_writer.h"

namespace eider {
namespace {

using test::safetensors_bytes;
using test::SafetensorsWriter;

/// The entries of a file and the bytes that they point into.
struct ParsedTensors {
  std::string bytes;
  Result<std::map<std::string, SafetensorsFile::Entry, std::less<>>> entries;

  explicit ParsedTensors(std::string file)
      : bytes(std::move(file)), entries(SafetensorsFile::parse(std::as_bytes(std::span(bytes)))) {}
};

std::string tensors_error(const std::string& file) {
  const ParsedTensors parsed(file);
  return parsed.entries ? "" : parsed.entries.error().message();
}

/// A header alone, over `data_bytes` of zeros.
std::string header_error(std::string_view header, std::size_t data_bytes = 0) {
  return tensors_error(safetensors_bytes(header, std::string(data_bytes, '\0')));
}

TEST(Safetensors, ReadsEntries) {
  const ParsedTensors parsed(SafetensorsWriter()
                                 .tensor("b", "F32", {2, 1}, "12345678")
                                 .tensor("a", "BF16", {}, "xy")
                                 .tensor("none", "I64", {0, 4}, "")
                                 .tensor("c", "F8_E4M3", {3}, "fp8")
                                 .pad_header(5)
                                 .bytes());
  ASSERT_TRUE(parsed.entries) << parsed.entries.error().message();
  ASSERT_EQ(parsed.entries->size(), 4u);
  const SafetensorsFile::Entry& b = parsed.entries->at("b");
  EXPECT_EQ(b.dtype, "F32");
  EXPECT_EQ(b.shape, (Shape{2, 1}));
  EXPECT_EQ(std::memcmp(b.bytes.data(), "12345678", 8), 0);
  EXPECT_EQ(parsed.entries->at("a").shape, Shape());
  EXPECT_EQ(parsed.entries->at("a").bytes.size(), 2u);
  EXPECT_EQ(parsed.entries->at("none").shape, (Shape{0, 4}));
  EXPECT_EQ(parsed.entries->at("c").dtype, "F8_E4M3");
}

TEST(Safetensors, KeysMayStandInAnyOrderAndMetadataIsPassedOver) {
  const std::string header =
      R"({"__metadata__":{"format":"pt","x":"y"},"t":{"data_offsets":[0,2],"shape":[1],"dtype":"F16"}})";
  const ParsedTensors parsed(safetensors_bytes(header, "hh"));
  ASSERT_TRUE(parsed.entries) << parsed.entries.error().message();
  EXPECT_EQ(parsed.entries->size(), 1u);
  EXPECT_TRUE(ParsedTensors(safetensors_bytes("{}", "")).entries);
}

TEST(SafetensorsHostile, Header) {
  EXPECT_EQ(tensors_error(""),
            "the file ends inside the header's length, at byte 0: it is cut off or damaged");
  const std::uint64_t huge = 100'000'001;
  EXPECT_EQ(tensors_error(std::string(reinterpret_cast<const char*>(&huge), 8)),
            "not a safetensors file: a header of 100000001 bytes; at most 100000000 are allowed");
  const std::uint64_t long_header = 50;
  EXPECT_EQ(tensors_error(std::string(reinterpret_cast<const char*>(&long_header), 8) + "{}"),
            "the file ends inside the header, at byte 10: it is cut off or damaged");
  EXPECT_EQ(header_error(" {}"), "not a safetensors file: its header does not begin with {");
  EXPECT_EQ(
      header_error("{"),
      "header: parse error at line 1, column 2: syntax error while parsing object key - unexpected end of "
      "input; expected string literal");
  EXPECT_EQ(
      header_error("{} {}"),
      "header: parse error at line 1, column 4: syntax error while parsing value - unexpected '{'; expected "
      "end of input");
  EXPECT_TRUE(header_error("{\"\xff\":1}").starts_with("header: parse error at line 1, column "));
}

TEST(SafetensorsHostile, Schema) {
  const std::string good = R"("dtype":"F32","shape":[],"data_offsets":[0,4])";
  EXPECT_EQ(header_error("{\"a\":{" + good + "},\"a\":{" + good + "}}", 4),
            "header: tensor \"a\" appears twice");
  EXPECT_EQ(header_error(R"({"__metadata__":{},"__metadata__":{}})"), "header: __metadata__ appears twice");
  EXPECT_EQ(header_error("{\"a\":{" + good + ",\"shape\":[]}}", 4),
            "header: tensor \"a\": shape appears twice");
  EXPECT_EQ(header_error("{\"a\":{" + good + ",\"x\":1}}", 4), "header: tensor \"a\": key \"x\" is unknown");
  EXPECT_EQ(header_error(R"({"a":{"dtype":"F32","shape":[]}})"),
            "header: tensor \"a\": it needs dtype, shape and data_offsets");
  EXPECT_EQ(header_error(R"({"a":[]})"), "header: \"a\": an array where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"dtype":4}})"), "header: \"a\": a number where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"shape":[[]]}})"), "header: \"a\": an array where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"shape":[-1]}})"),
            "header: \"a\": a negative number where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"shape":[1.5]}})"), "header: \"a\": a fraction where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"shape":[null]}})"), "header: \"a\": null where the format has none");
  EXPECT_EQ(header_error(R"({"a":{"dtype":true}})"), "header: \"a\": a boolean where the format has none");
  EXPECT_EQ(header_error(R"({"__metadata__":{"a":{}}})"),
            "header: \"__metadata__\": an object where the format has none");
  EXPECT_NE(header_error(std::string(100'000, '[')), "");
  EXPECT_NE(header_error("{\"a\":{\"shape\":" + std::string(100'000, '[')), "");
}

std::string entry_error(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return header_error(
      "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}", 16);
}

TEST(SafetensorsHostile, Entries) {
  EXPECT_EQ(entry_error("F32", "[4]", "[0,16]"), "");
  EXPECT_EQ(entry_error("F33", "[4]", "[0,16]"), "tensor \"t\": dtype \"F33\" is unknown");
  EXPECT_EQ(entry_error("F32", "[1,1,1,1,4]", "[0,16]"),
            "tensor \"t\": 5 dimensions; at most 4 are supported");
  EXPECT_EQ(entry_error("F32", "[4]", "[0]"), "tensor \"t\": data_offsets has 1 numbers instead of 2");
  EXPECT_EQ(entry_error("F32", "[4]", "[0,17]"),
            "tensor \"t\": data_offsets 0 to 17 lie outside the data section of 16 bytes");
  EXPECT_EQ(entry_error("F32", "[4]", "[16,0]"),
            "tensor \"t\": data_offsets 16 to 0 lie outside the data section of 16 bytes");
  EXPECT_EQ(entry_error("F32", "[3]", "[0,16]"),
            "tensor \"t\": F32 [3] takes 12 bytes, but data_offsets span 16");
  EXPECT_EQ(entry_error("F32", "[4294967296,4294967296]", "[0,16]"),
            "tensor \"t\": its shape overflows, or does not end at a whole byte");
  EXPECT_EQ(entry_error("F32", "[0,18446744073709551615]", "[0,0]"),
            "tensor \"t\": its shape overflows, or does not end at a whole byte");
  EXPECT_EQ(entry_error("F4", "[3]", "[0,2]"),
            "tensor \"t\": its shape overflows, or does not end at a whole byte");
  EXPECT_EQ(entry_error("F4", "[32]", "[0,16]"), "");
}

TEST(SafetensorsHostile, TensorsCoverTheData) {
  const auto two = [](const std::string& first, const std::string& second) {
    return header_error("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":" + first +
                            "},\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":" + second + "}}",
                        16);
  };
  EXPECT_EQ(two("[8,16]", "[0,8]"), "");
  EXPECT_EQ(two("[0,8]", "[4,12]"), "tensor \"b\" overlaps another one");
  EXPECT_EQ(two("[0,8]", "[0,8]"), "tensor \"b\" overlaps another one");
  EXPECT_EQ(header_error(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})", 16),
            "a hole of 8 bytes before tensor \"a\"");
  EXPECT_EQ(header_error(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 16),
            "8 bytes after the last tensor belong to none");
  EXPECT_EQ(header_error("{}", 3), "3 bytes after the last tensor belong to none");
}

TEST(SafetensorsHostile, DamageAtAnyByteDoesNoHarm) {
  const std::string whole = SafetensorsWriter()
                                .tensor("first", "F32", {2, 2}, std::string(16, 'f'))
                                .tensor("second", "I8", {3}, "abc")
                                .bytes();
  ASSERT_EQ(tensors_error(whole), "");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const std::string message = tensors_error(whole.substr(0, at));
    EXPECT_NE(message, "") << "cut to " << at << " bytes";
    EXPECT_EQ(message.find('\n'), std::string::npos);
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_EQ(tensors_error(damaged).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace eider
