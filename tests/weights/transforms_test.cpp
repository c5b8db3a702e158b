#include "weights/transforms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace eider {
namespace {

template <class T>
TensorView view(const std::vector<T>& values, Format format, const Shape& shape) {
  return {"t", format, shape, reinterpret_cast<const std::byte*>(values.data())};
}

std::vector<float> floats(const TensorView& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.elements()));
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  return values;
}

TEST(Transforms, SlicesOfTheFirstDimensionKeepTheRank) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto vector = slice_first_dimension(view(values, Format::kF32, {12}), 3, 2, "v");
  ASSERT_TRUE(vector) << vector.error().message();
  EXPECT_EQ(vector->name, "v");
  EXPECT_EQ(vector->shape, (Shape{2}));
  EXPECT_EQ(floats(*vector), (std::vector<float>{3, 4}));
  const auto matrix = slice_first_dimension(view(values, Format::kF32, {4, 3}), 1, 2, "m");
  EXPECT_EQ(matrix->shape, (Shape{2, 3}));
  EXPECT_EQ(floats(*matrix), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  const auto cube = slice_first_dimension(view(values, Format::kF32, {3, 2, 2}), 2, 1, "c");
  EXPECT_EQ(cube->shape, (Shape{1, 2, 2}));
  EXPECT_EQ(floats(*cube), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(slice_first_dimension(view(values, Format::kF32, Shape()), 0, 0, "s").error().message(),
            "tensor \"t\": a scalar has no rows");
}

TEST(Transforms, SlicesOfMatrices) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const TensorView matrix = slice_matrix(view(values, Format::kF32, {2, 3, 2}), 1, "m");
  EXPECT_EQ(matrix.shape, (Shape{3, 2}));
  EXPECT_EQ(floats(matrix), (std::vector<float>{6, 7, 8, 9, 10, 11}));
}

TEST(Transforms, HalfSplitRowsUndoTheInterleaving) {
  // Two heads of 6 rows: pairs (x0, y0), (x1, y1), (x2, y2) become x0 x1 x2 y0 y1 y2.
  const std::vector<float> interleaved = {0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112};
  auto rows = half_split_like(view(interleaved, Format::kF32, {12, 1}), 2);
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_EQ(floats(rows->view), std::vector<float>(12));
  copy_half_split_rows(view(interleaved, Format::kF32, {12, 1}), 2, rows->buffer.data());
  EXPECT_EQ(floats(rows->view), (std::vector<float>{0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}));
  EXPECT_EQ(rows->view.shape, (Shape{12, 1}));
  EXPECT_FALSE(half_split_like(view(interleaved, Format::kF32, {12, 1}), 4)) << "three rows a head";
  EXPECT_FALSE(half_split_like(view(interleaved, Format::kF32, {12, 1}), 0));
}

TEST(Transforms, OnePlusIsRoundedOnce) {
  // BF16 patterns of 1, -1, 2^-24 (lost in the sum), 0.5, -0, 1.5 * 2^-23 (rounds to the even neighbour).
  const std::vector<std::uint16_t> weights = {0x3f80, 0xbf80, 0x3380, 0x3f00, 0x8000, 0x3440};
  const auto factors = one_plus(view(weights, Format::kBF16, {6}));
  ASSERT_TRUE(factors) << factors.error().message();
  EXPECT_EQ(factors->view.format, Format::kF32);
  EXPECT_EQ(floats(factors->view), (std::vector<float>{2, 0, 1, 1.5f, 1, 0x1.000004p0f}));
}

TEST(Transforms, AlignedCopiesHaveTheSameBytes) {
  const std::vector<char> bytes = {'x', 'a', 'b', 'c', 'd'};
  const TensorView odd{"t", Format::kF32, Shape{1}, reinterpret_cast<const std::byte*>(bytes.data()) + 1};
  const auto copy = aligned_copy(odd);
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_EQ(std::memcmp(copy->view.data, "abcd", 4), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy->view.data) % 64, 0u);
}

}  // namespace
}  // namespace eider
