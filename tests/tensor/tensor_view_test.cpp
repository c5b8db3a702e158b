#include "tensor/tensor_view.h"

#include <gtest/gtest.h>

namespace eider {
namespace {

TEST(Shape, RowsColumnsAndText) {
  const Shape matrix{3, 4};
  EXPECT_EQ(matrix.rank(), 2);
  EXPECT_EQ(matrix[0], 3);
  EXPECT_EQ(matrix.rows(), 3);
  EXPECT_EQ(matrix.columns(), 4);
  EXPECT_EQ(matrix.elements(), 12);
  EXPECT_EQ(matrix.text(), "[3, 4]");
  EXPECT_EQ(Shape({2, 3, 4}).rows(), 6);
  EXPECT_EQ(Shape{5}.rows(), 1);
  EXPECT_EQ(Shape{5}.columns(), 5);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().elements(), 1) << "a scalar";
  EXPECT_EQ(Shape().text(), "[]");
}

TEST(Shape, Equality) {
  EXPECT_EQ((Shape{1, 2}), (Shape{1, 2}));
  EXPECT_NE((Shape{1, 2}), (Shape{2, 1}));
  EXPECT_NE((Shape{2}), (Shape{2, 0})) << "the rank counts";
}

TEST(ShapeDeath, IndexOutsideTheRank) {
  EXPECT_DEATH(((void)Shape{1, 2}[2]), "check failed");
  EXPECT_DEATH(Shape({1, 2, 3, 4, 5}), "check failed");
}

TEST(TensorView, RowsOfBlocks) {
  const std::vector<std::byte> bytes(4 * 2 * 18);
  const TensorView tensor{"w", Format::kQ4_0, Shape{4, 64}, bytes.data()};
  EXPECT_EQ(tensor.row_bytes(), 2 * 18);
  EXPECT_EQ(tensor.bytes(), 4 * 2 * 18);
  EXPECT_EQ(tensor.row(3) - tensor.data, 3 * 36);
}

TEST(TensorView, SliceOfRows) {
  const std::vector<std::byte> bytes(2 * 3 * 8 * 4);
  const TensorView cube{"w", Format::kF32, Shape{2, 3, 8}, bytes.data()};
  const TensorView slice = cube.slice_rows(4, 2, "part");
  EXPECT_EQ(slice.name, "part");
  EXPECT_EQ(slice.shape, (Shape{2, 8}));
  EXPECT_EQ(slice.data - cube.data, 4 * 8 * 4);
  EXPECT_EQ(cube.slice_rows(6, 0, "none").bytes(), 0);
}

TEST(TensorViewDeath, SliceOutsideTheRows) {
  const TensorView tensor{"w", Format::kF32, Shape{4, 2}, nullptr};
  EXPECT_DEATH(tensor.slice_rows(3, 2, "x"), "check failed");
  EXPECT_DEATH(tensor.slice_rows(-1, 1, "x"), "check failed");
}

}  // namespace
}  // namespace eider
