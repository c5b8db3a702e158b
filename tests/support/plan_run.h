// TestPlan and run_plan(): a plan with inputs of the test's choosing, run by the reference backend in any way
// that must not matter (threads, builds of the kernels, steps), with every value kept.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <list>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ops/recorder.h"
#include "tests/support/named_backend.h"
#include "tests/support/quantize.h"

namespace eider::test {

/// Records a plan whose inputs are given row by row: embedding tables in which row i of the run finds its row
/// i.
class TestPlan {
 public:
  Recorder recorder;

  /// values: [rows, width], bit for bit (but that a signalling NaN becomes quiet).
  ValueId input(const std::vector<float>& values, std::int64_t width) {
    return recorder.embed(weight(Format::kF32, values, width));
  }
  /// A matrix [values.size() / columns, columns] in `format`, or a vector when `columns` is all of it.
  TensorView weight(Format format, const std::vector<float>& values, std::int64_t columns) {
    const auto rows = static_cast<std::int64_t>(values.size()) / columns;
    std::vector<std::byte>& bytes = storage_.emplace_back();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<std::byte> encoded =
          quantize_row(format, std::span(values).subspan(static_cast<std::size_t>(row * columns),
                                                         static_cast<std::size_t>(columns)));
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
    }
    return {"weight", format, Shape{rows, columns}, bytes.data()};
  }
  /// Scales for [rows, columns] of FP8 in such blocks: value i of `values` and on, over and over.
  BlockScales scales(BlockScales blocks, const std::vector<float>& values, std::int64_t rows,
                     std::int64_t columns) {
    const std::int64_t row_blocks = (blocks.first_row + rows + blocks.block_rows - 1) / blocks.block_rows;
    if (blocks.block_columns > 0)
      blocks.column_blocks = (columns + blocks.block_columns - 1) / blocks.block_columns;
    std::vector<float>& table = tables_.emplace_back();
    for (std::int64_t i = 0; i < row_blocks * blocks.column_blocks; ++i)
      table.push_back(values[static_cast<std::size_t>(i) % values.size()]);
    blocks.values = table.data();
    return blocks;
  }
  TensorView vector(const std::vector<float>& values, Format format = Format::kF32) {
    TensorView tensor = weight(format, values, static_cast<std::int64_t>(values.size()));
    tensor.shape = Shape{static_cast<std::int64_t>(values.size())};
    return tensor;
  }

  /// Ends the recording; `last` of any step's rows becomes the logits.
  Plan finish(ValueId last) { return std::move(recorder).finish(recorder.select_rows(last)); }

 private:
  std::list<std::vector<std::byte>> storage_;
  std::list<std::vector<float>> tables_;
};

/// Where the rows of a run stand; empty: row i at position i of one sequence.
struct RowPlaces {
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> sequence;
};

/// Everything that must not change a bit of the results.
struct RunManner {
  int threads = 2;
  std::string backend = "reference";  ///< named_backend.h
  std::vector<std::int64_t> steps;    ///< rows of each step; empty: all in one
};

/// The floats (or int32 bits) of each value of a plan, by value index, the rows of all steps one after the
/// other.
using ValueBits = std::vector<std::vector<std::uint32_t>>;

inline std::vector<float> floats_of(const std::vector<std::uint32_t>& bits) {
  std::vector<float> floats(bits.size());
  std::memcpy(floats.data(), bits.data(), bits.size() * 4);
  return floats;
}

/// Blocks for the rows of a run. They start as what a reused block may hold at worst: NaN everywhere.
class TestKv {
 public:
  TestKv(const Plan& plan, KvType type, const RowPlaces& places) {
    const std::int32_t sequences = *std::ranges::max_element(places.sequence) + 1;
    const std::int32_t blocks = *std::ranges::max_element(places.positions) / kKvBlockPositions + 1;
    for (std::int32_t sequence = 0; sequence < sequences; ++sequence) {
      SequenceBlocks& tables = sequences_.emplace_back();
      for (std::size_t kind = 0; kind < plan.kv_kinds.size(); ++kind) {
        auto& table = tables_.emplace_back();
        for (std::int32_t block = 0; block < blocks; ++block) {
          auto& memory = memory_.emplace_back(
              static_cast<std::size_t>(kv_block_bytes(plan.kv_kinds[kind], type)), std::byte{0xff});
          table.push_back(memory.data());
        }
        tables.blocks[kind] = table.data();
      }
    }
  }
  std::span<const SequenceBlocks> sequences() const { return sequences_; }

 private:
  std::vector<SequenceBlocks> sequences_;
  std::list<std::vector<std::byte*>> tables_;
  std::list<std::vector<std::byte>> memory_;
};

inline RowPlaces places_in_order(std::int64_t rows) {
  RowPlaces places;
  places.positions.resize(static_cast<std::size_t>(rows));
  std::iota(places.positions.begin(), places.positions.end(), 0);
  places.sequence.resize(places.positions.size());
  return places;
}

/// Runs rows 0..rows-1 of a TestPlan. All rows' logits are wanted.
inline ValueBits run_plan(const Plan& plan, const RowPlaces& places, const RunManner& manner,
                          KvType kv_type = KvType::kF32) {
  const auto rows = static_cast<std::int64_t>(places.positions.size());
  const std::vector<std::int64_t> steps = manner.steps.empty() ? std::vector{rows} : manner.steps;
  EIDER_CHECK_EQ(std::reduce(steps.begin(), steps.end()), rows);
  ThreadPool pool(manner.threads);
  const auto backend = make_backend(manner.backend, pool);
  const std::int64_t most = *std::ranges::max_element(steps);
  const std::int64_t positions = *std::ranges::max_element(places.positions) + 1;
  auto executable = backend->compile(plan, {most, most, kv_type, positions});
  EIDER_CHECK(executable.ok());

  const TestKv kv(plan, kv_type, places);
  std::vector<TokenId> ids(static_cast<std::size_t>(rows));
  std::iota(ids.begin(), ids.end(), 0);
  ValueBits values(plan.values.size());
  const auto keep = [&](const Op&, ValueId value, const void* data, std::int64_t count) {
    const auto* bits = static_cast<const std::uint32_t*>(data);
    auto& kept = values[static_cast<std::size_t>(value.index)];
    kept.insert(kept.end(), bits, bits + count * plan.value(value).width);
  };
  const Observer observer(keep);
  std::size_t begin = 0;
  for (std::int64_t step : steps) {
    const auto count = static_cast<std::size_t>(step);
    std::vector<std::int32_t> logit_rows(count);
    std::iota(logit_rows.begin(), logit_rows.end(), 0);
    const auto part = [&](const std::vector<std::int32_t>& all) {
      return std::span(all).subspan(begin, count);
    };
    (*executable)
        ->run({part(ids), part(places.positions), part(places.sequence), kv.sequences(), logit_rows},
              &observer);
    begin += count;
  }
  return values;
}

/// Equal bits, where any NaN equals any other. Says where the first difference is.
inline testing::AssertionResult same_bits(std::span<const std::uint32_t> a,
                                          std::span<const std::uint32_t> b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  const auto is_nan = [](std::uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; };
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(is_nan(a[i]) && is_nan(b[i])))
      return testing::AssertionFailure()
             << "element " << i << ": " << std::hexfloat << std::bit_cast<float>(a[i]) << " and "
             << std::bit_cast<float>(b[i]);
  return testing::AssertionSuccess();
}
inline testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> bits(a.size());
  std::memcpy(bits.data(), a.data(), a.size() * 4);
  return same_bits(std::span<const std::uint32_t>(bits), std::span<const std::uint32_t>(b));
}

inline testing::AssertionResult same_values(const Plan& plan, const ValueBits& a, const ValueBits& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (auto result = same_bits(std::span<const std::uint32_t>(a[i]), std::span<const std::uint32_t>(b[i]));
        !result)
      return result << ", in value " << i << " (" << plan.values[i].name << ")";
  return testing::AssertionSuccess();
}

}  // namespace eider::test
