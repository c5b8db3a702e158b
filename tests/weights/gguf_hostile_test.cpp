// Damaged and hostile GGUF files: one case for each kind of damage, with what the reader says about it.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/gguf_writer.h"
#include "tests/support/memory_file.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"

namespace eider {
namespace {

using test::GgufWriter;

/// Numbers as bytes, one after the other.
template <class... T>
std::string raw(T... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

/// What parsing gives: the error, or "" when there is none.
std::string parse_error(const std::string& bytes) {
  const std::string copy(bytes);  // on the heap, so that the address sanitizer sees reads past the end
  const auto file = GgufFile::parse(std::as_bytes(std::span(copy)));
  return file ? "" : file.error().message();
}

std::string parse_error(const GgufWriter& writer) {
  return parse_error(writer.bytes());
}

GgufWriter one_tensor(GgufWriter::Tensor tensor) {
  return GgufWriter().tensor(std::move(tensor));
}

TEST(GgufHostile, Header) {
  EXPECT_EQ(parse_error(std::string()),
            "the file ends inside the magic number, at byte 0: it is cut off or damaged");
  EXPECT_EQ(parse_error(std::string("GGML") + raw(3, 0L, 0L)),
            "not a GGUF file: it does not begin with \"GGUF\"");
  EXPECT_EQ(parse_error(std::string("GGUF") + raw(3, 0)),
            "the file ends inside the tensor count, at byte 12: it is cut off or damaged");
  EXPECT_EQ(parse_error(std::string("GGUF") + raw(0x03000000, 0L, 0L)),
            "a big-endian GGUF file; convert it to little-endian");
  EXPECT_EQ(parse_error(std::string("GGUF") + raw(1, 0L, 0L)),
            "GGUF version 1 is not supported; supported are 2 and 3");
  EXPECT_EQ(parse_error(std::string("GGUF") + raw(4, 0L, 0L)),
            "GGUF version 4 is not supported; supported are 2 and 3");
}

TEST(GgufHostile, AbsurdCounts) {
  GgufWriter writer;
  writer.claimed_tensors = ~std::uint64_t{0};
  EXPECT_EQ(parse_error(writer),
            "the header claims 18446744073709551615 tensors, more than the file has room for");
  writer = GgufWriter();
  writer.claimed_metadata = std::uint64_t{1} << 40;
  EXPECT_EQ(parse_error(writer),
            "the header claims 1099511627776 metadata entries, more than the file has room for");
  // One more than there is, with room for it.
  writer = GgufWriter();
  writer.metadata("padding", std::string(100, 'x'));
  writer.claimed_tensors = 1;
  EXPECT_NE(parse_error(writer), "");
}

TEST(GgufHostile, Metadata) {
  EXPECT_EQ(parse_error(GgufWriter().metadata("a", 1).metadata("a", 2)), "metadata key \"a\" appears twice");
  EXPECT_EQ(parse_error(GgufWriter().metadata("", 1)),
            "metadata entry 1 of 1: a key of 0 bytes; 1 to 65535 are allowed");
  EXPECT_EQ(parse_error(GgufWriter().metadata(std::string(70000, 'k'), 1)),
            "metadata entry 1 of 1: a key of 70000 bytes; 1 to 65535 are allowed");
  EXPECT_EQ(parse_error(GgufWriter().raw_metadata("a\nb", raw(13, 0))),
            "metadata key \"a\\x0ab\": value type 13 is unknown");
  EXPECT_EQ(parse_error(GgufWriter().raw_metadata("a", raw(9, 9, 0L))),
            "metadata key \"a\": an array of arrays, which GGUF does not have");
  EXPECT_EQ(parse_error(GgufWriter().raw_metadata("a", raw(9, 77, 1L))),
            "metadata key \"a\": value type 77 is unknown");
  EXPECT_EQ(
      parse_error(GgufWriter().raw_metadata("a", raw(9, 4, ~0L))),
      "metadata key \"a\": 18446744073709551615 x u32 do not fit in the file: it is cut off or damaged");
  EXPECT_EQ(
      parse_error(GgufWriter().raw_metadata("a", raw(9, 8, 1L << 60))),
      "metadata key \"a\": the file ends inside its 1152921504606846976 strings: it is cut off or damaged");
  EXPECT_EQ(parse_error(GgufWriter().raw_metadata("a", raw(8, ~0L))),
            "metadata key \"a\": the file ends inside its 1 strings: it is cut off or damaged");
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 1u << 31})
    EXPECT_EQ(
        parse_error(GgufWriter().metadata("general.alignment", alignment)),
        "general.alignment is " + std::to_string(alignment) + "; it must be a power of two, at least 8");
  EXPECT_EQ(parse_error(GgufWriter().metadata("general.alignment", "x")),
            "metadata key general.alignment: expected an integer below 2^63, found a string");
}

TEST(GgufHostile, TensorEntries) {
  const std::string four(4, '\0');
  EXPECT_EQ(parse_error(one_tensor({"a", {1}, 0, four, {}}).tensor({"a", {1}, 0, four, {}})),
            "tensor \"a\" appears twice");
  EXPECT_EQ(parse_error(one_tensor({"", {1}, 0, four, {}})),
            "tensor 1 of 1: a name of 0 bytes; 1 to 63 are allowed");
  EXPECT_EQ(parse_error(one_tensor({std::string(64, 'n'), {1}, 0, four, {}})),
            "tensor 1 of 1: a name of 64 bytes; 1 to 63 are allowed");
  EXPECT_EQ(parse_error(one_tensor({"a", {1, 1, 1, 1, 1}, 0, four, {}})),
            "tensor \"a\": 5 dimensions; at most 4 are allowed");
  EXPECT_EQ(parse_error(one_tensor({"a", {1, 0}, 0, four, {}})), "tensor \"a\": dimension 0 is 0");
  EXPECT_EQ(parse_error(one_tensor({"a", {-1, 1}, 0, four, {}})), "tensor \"a\": dimension 1 is -1");
  EXPECT_EQ(parse_error(one_tensor({"a", {1L << 32, 1L << 32}, 0, four, {}})),
            "tensor \"a\": its dimensions overflow 64 bits");
  EXPECT_EQ(parse_error(one_tensor({"a", {1L << 31, 1L << 31}, 0, four, {}})),
            "tensor \"a\": its size overflows 64 bits");
  EXPECT_EQ(parse_error(one_tensor({"a", {1L << 31, 1L << 30}, 27, four, {}})),
            "tensor \"a\": its size overflows 64 bits");
  EXPECT_EQ(parse_error(one_tensor({"a", {1, 33}, 2, four, {}})),
            "tensor \"a\": Q4_0 needs rows of a multiple of 32 columns, has 33");
  EXPECT_EQ(parse_error(one_tensor({"a", {2, 128}, 12, four, {}})),
            "tensor \"a\": Q4_K needs rows of a multiple of 256 columns, has 128");
  EXPECT_EQ(parse_error(one_tensor({"a", {1, 256}, 42, four, {}})).substr(0, 50),
            "tensor \"a\": type Q2_0 (number 42) is not supported");
  EXPECT_EQ(parse_error(one_tensor({"a", {1, 32}, 4, four, {}})).substr(0, 45),
            "tensor \"a\": type number 4 is unknown (removed");
}

TEST(GgufHostile, TensorData) {
  const std::string data(64, '\0');
  EXPECT_EQ(parse_error(one_tensor({"a", {16}, 0, data, 8})),
            "tensor \"a\": offset 8 is not a multiple of the alignment 32");
  EXPECT_EQ(parse_error(one_tensor({"a", {17}, 0, data, {}})),
            "tensor \"a\": 68 bytes at offset 0 end past the file, whose data section has 64 bytes");
  EXPECT_EQ(parse_error(one_tensor({"a", {9}, 28, data, {}})),
            "tensor \"a\": 72 bytes at offset 0 end past the file, whose data section has 64 bytes");
  EXPECT_EQ(parse_error(one_tensor({"a", {16}, 0, data, 1UL << 63})),
            "tensor \"a\": 64 bytes at offset 9223372036854775808 end past the file, whose data section has "
            "64 bytes");
  EXPECT_EQ(parse_error(one_tensor({"a", {16}, 0, data, {}}).tensor({"b", {16}, 0, data, 32})),
            "tensors \"a\" and \"b\" overlap");
  EXPECT_EQ(parse_error(one_tensor({"a", {16}, 0, data, {}}).tensor({"b", {16}, 26, data, 32})),
            "tensors \"a\" and \"b\" overlap");
  EXPECT_EQ(parse_error(one_tensor({"a", {1}, 0, data, 32}).tensor({"b", {16}, 0, data, 0})),
            "tensors \"b\" and \"a\" overlap");
}

GgufWriter small_model() {
  GgufWriter writer;
  writer.metadata("general.architecture", "llama")
      .metadata("llama.block_count", 1)
      .metadata("llama.context_length", 64);
  writer.metadata("llama.embedding_length", 4).metadata("llama.attention.head_count", 2);
  writer.metadata("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.metadata("tokenizer.ggml.model", "llama")
      .metadata("tokenizer.ggml.scores", std::vector<float>{0, 1});
  writer.metadata("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  writer.metadata("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 3});
  writer.tensor("token_embd.weight", {2, 4}, std::vector<float>(8, 1));
  writer.tensor({"indices", {8}, 26, std::string(32, '\1'), {}});
  writer.tensor("blk.0.attn_q.weight", {4, 4}, std::vector<float>(16, 1));
  return writer;
}

/// Everything that reads the file, by every reader.
void read_all(const test::MemoryFile& file, const std::string& bytes) {
  if (const auto parsed = GgufFile::parse(std::as_bytes(std::span(bytes)))) (void)read_vocabulary(*parsed);
  file.assign(bytes);
  const auto checkpoint = Checkpoint::open(file.path());
  if (!checkpoint) return;
  for (const auto& [name, tensor] : (*checkpoint)->tensors()) {
    volatile std::byte sink = tensor.data[tensor.bytes() - 1];
    (void)sink;
  }
  for (const auto& [name, tensor] : (*checkpoint)->data_tensors()) {
    volatile std::byte sink = tensor.bytes.back();
    (void)sink;
  }
}

TEST(GgufHostile, TruncationAtEveryByteIsAnError) {
  const std::string whole = small_model().bytes();
  ASSERT_EQ(parse_error(whole), "");
  const test::MemoryFile file;
  // The last tensor ends at the file's end: its 64 bytes need no padding.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const std::string message = parse_error(cut);
    ASSERT_NE(message, "") << "cut to " << size << " bytes";
    ASSERT_EQ(message.find('\n'), std::string::npos);
    read_all(file, cut);
  }
}

TEST(GgufHostile, NoFlippedByteDoesHarm) {
  const std::string whole = small_model().bytes();
  const test::MemoryFile file;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      read_all(file, damaged);
    }
  }
}

}  // namespace
}  // namespace eider
