// Random cases of every operation: shapes, formats and values come from a seed alone, so that a case can be
// run again. Values are what breaks careless arithmetic: ragged tails, denormals, infinities, NaN, extreme
// scales and weights of any bytes.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/host/kernels.h"
#include "ops/rope.h"
#include "tests/support/plan_run.h"
#include "tests/support/random_floats.h"

namespace eider::test {

/// A plan of one operation, to be run over `places` with values in KV blocks of `kv_type`.
struct OpCase {
  std::string what;  ///< for messages
  TestPlan storage;  ///< owns what the plan reads
  Plan plan;
  RowPlaces places;
  KvType kv_type = KvType::kF16;
};

class OpCaseMaker {
 public:
  /// The operations, by the names that make() knows.
  static constexpr const char* kOperations[] = {"embed",     "rms_norm",    "linear",    "rope",
                                                "attention", "elementwise", "moe_route", "moe_ffn"};

  explicit OpCaseMaker(std::uint64_t seed) : random_(seed) {}

  /// A case of one operation; empty: of any.
  OpCase make(std::string operation = {}) {
    if (operation.empty()) operation = kOperations[random_.below(std::size(kOperations))];
    OpCase result;
    rows_ = pick({1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 33, 40, 70});
    result.kv_type = random_.below(2) == 0 ? KvType::kF16 : KvType::kF32;
    result.places = places_in_order(rows_);
    what_ = operation;
    // Of all of a case's FP8 weights: whole rows, published blocks, those of slices; 0 rows: none.
    blocks_ = {nullptr, pick({0, 1, 20, 32, 128, 128, 128, 4096}), pick({0, 32, 64, 128, 128}), 1,
               random_.below(2) == 0 ? 0 : pick({7, 32})};
    what_ += fmt::format(" (scales of {} x {})", blocks_.block_rows, blocks_.block_columns);
    const ValueId last = record(operation, result);
    result.what = what_ + fmt::format(", {} rows", rows_);
    result.plan = result.storage.finish(last);
    return result;
  }

  /// A way to run it that must not change a bit.
  RunManner manner(std::int64_t rows, const std::string& backend) {
    constexpr int kThreads[] = {1, 2, 3, 5, 16};
    RunManner manner{.threads = kThreads[random_.below(5)], .backend = backend, .steps = {}};
    for (std::int64_t left = rows; left > 0; left -= manner.steps.back())
      manner.steps.push_back(random_.below(2) == 0 ? left : 1 + random_.below(left));
    return manner;
  }

 private:
  ValueId record(const std::string& operation, OpCase& result) {
    if (operation == "embed") return embed(result.storage);
    if (operation == "rms_norm") return rms_norm(result.storage);
    if (operation == "linear") return linear(result.storage);
    if (operation == "rope") return rope(result);
    if (operation == "attention") return attention(result);
    if (operation == "elementwise") return elementwise(result.storage);
    if (operation == "moe_route") return moe_route(result.storage).second;
    EIDER_CHECK(operation == "moe_ffn");
    return moe_ffn(result.storage);
  }

  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return values.begin()[random_.below(static_cast<std::int64_t>(values.size()))];
  }

  /// [rows, width]: salted or plain, of a random scale.
  std::vector<float> values(std::int64_t rows, std::int64_t width) {
    if (random_.below(3) == 0) return random_.salted(rows, width);
    constexpr float kScales[] = {1, 1, 1, 3e-3f, 1e-20f, 1e-38f, 1e5f, 1e18f};
    return random_.normal(rows * width, kScales[random_.below(8)]);
  }
  ValueId input(TestPlan& test, std::int64_t width) { return test.input(values(rows_, width), width); }

  /// A format whose block divides `columns`.
  Format format(std::int64_t columns) {
    for (;;) {
      const auto format = static_cast<Format>(random_.below(static_cast<std::int64_t>(host::kFormats)));
      if (columns % format_block_elems(format) == 0) return format;
    }
  }
  std::int64_t columns(std::int64_t most) {
    switch (random_.below(3)) {
      case 0:
        return 1 + random_.below(std::min<std::int64_t>(most, 200));
      case 1:
        return 32 * (1 + random_.below(most / 32));
      default:
        return 256 * (1 + random_.below(most / 256));
    }
  }
  /// Encoded floats, or any bytes at all: every code, and scales that are infinite, NaN or denormal.
  TensorView matrix(TestPlan& test, Format format, std::int64_t rows, std::int64_t columns) {
    const float scale = pick({0, 1}) == 0 ? 1.0f : 1e-4f;
    TensorView tensor = test.weight(format, random_.normal(rows * columns, scale), columns);
    if (random_.below(3) == 0) {
      auto* bytes = const_cast<std::byte*>(tensor.data);  // the test's own
      for (std::int64_t i = 0; i < rows * tensor.row_bytes(); ++i) {
        bytes[i] = static_cast<std::byte>(random_.below(256));
        if (format == Format::kFP8_E4M3 && FP8_E4M3::is_nan(static_cast<std::uint8_t>(bytes[i])))
          bytes[i] = std::byte{0x7e};  // NaN codes are refused
      }
    }
    if (format == Format::kFP8_E4M3 && blocks_.block_rows > 0) {
      const float typical = static_cast<float>(pick({1, 1, 1, 1000})) * 1e-3f;
      std::vector<float> values = random_.normal(50, typical);
      if (random_.below(4) == 0) values[0] = values[7] = 0x1p-140f, values[3] = 0x1p110f, values[4] = 0;
      tensor.scales = test.scales(blocks_, values, rows, columns);
    }
    return tensor;
  }

  ValueId embed(TestPlan& test) {
    const std::int64_t width = columns(1024);
    const Format format = this->format(width);
    what_ += fmt::format(" {} x {}", format_name(format), width);
    return test.recorder.embed(matrix(test, format, rows_, width), 8.125f);
  }

  ValueId rms_norm(TestPlan& test) {
    const std::int64_t width = 1 + random_.below(pick({40, 300, 2500})), groups = pick({1, 1, 3});
    what_ += fmt::format(" of {} x {}", groups, width);
    return test.recorder.rms_norm(input(test, width * groups), test.vector(random_.normal(width)), 1e-5f,
                                  groups);
  }

  ValueId linear(TestPlan& test) {
    const std::int64_t width = columns(2048);
    const ValueId in = input(test, width);
    what_ += fmt::format(" of {} columns:", width);
    const auto projection = [&] {
      const std::int64_t outputs = 1 + random_.below(100);
      const Format format = this->format(width);
      what_ += fmt::format(" {} {}", outputs, format_name(format));
      Recorder::Linear linear{matrix(test, format, outputs, width), {}};
      if (random_.below(2) == 0) linear.bias = test.vector(random_.normal(outputs));
      return linear;
    };
    if (random_.below(2) == 0) return test.recorder.linear(in, projection());
    return test.recorder.linear<3>(in, {projection(), projection(), projection()})[1];
  }

  ValueId rope(OpCase& result) {
    const std::int64_t heads = 1 + random_.below(4), rotary = 2 * (1 + random_.below(40));
    const std::int64_t head_dim = rotary + pick({0, 0, 1, 16});
    for (std::int32_t& position : result.places.positions)
      position = static_cast<std::int32_t>(random_.below(5000));
    what_ += fmt::format(" of {} in {} heads of {}", rotary, heads, head_dim);
    Recorder& recorder = result.storage.recorder;
    return recorder.rope(input(result.storage, heads * head_dim),
                         recorder.rope_table(rope_default(rotary, 10000)), heads);
  }

  /// Rows of one to three sequences, of some blocks.
  void place_sequences(RowPlaces& places) {
    places = {};
    const auto sequences = static_cast<std::int32_t>(1 + random_.below(3));
    for (std::int32_t sequence = 0; sequence < sequences; ++sequence) {
      const auto tokens = static_cast<std::int32_t>(1 + random_.below(pick({20, 140, 300})));
      for (std::int32_t position = 0; position < tokens; ++position) {
        places.positions.push_back(position);
        places.sequence.push_back(sequence);
      }
    }
    rows_ = static_cast<std::int64_t>(places.positions.size());
  }

  ValueId attention(OpCase& result) {
    place_sequences(result.places);
    const std::int64_t kv_heads = 1 + random_.below(3), group = pick({1, 1, 2, 3, 4, 8});
    const std::int64_t head_dim = pick({1, 16, 31, 32, 33, 40, 64, 80, 96, 128, 256});
    const std::int64_t window = pick({0, 0, 0, 1, 20, 128, 150});
    const auto softcap = static_cast<float>(pick({0, 0, 3, 50}));
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    what_ += fmt::format(" of {}:{} heads of {}, window {}, cap {}, {}", kv_heads * group, kv_heads, head_dim,
                         window, softcap, result.kv_type == KvType::kF16 ? "F16" : "F32");
    TestPlan& test = result.storage;
    const int kind = test.recorder.kv_kind({"kind", 0, kv_heads, head_dim, window});
    if (random_.below(2) == 0) test.recorder.kv_slot(kind);  // another layer's place before ours
    const KvSlot slot = test.recorder.kv_slot(kind);
    const ValueId keys = input(test, kv_heads * head_dim), cached = input(test, kv_heads * head_dim);
    test.recorder.store_kv(keys, cached, slot);
    return test.recorder.attention(input(test, kv_heads * group * head_dim), slot, kv_heads * group, scale,
                                   softcap);
  }

  ValueId elementwise(TestPlan& test) {
    const std::int64_t width = 1 + random_.below(300);
    const ValueId a = input(test, width), b = input(test, width);
    switch (random_.below(4)) {
      case 0:
        what_ += " add";
        return test.recorder.add(a, b);
      case 1:
        what_ += " silu";
        return test.recorder.gated_activation(Activation::kSilu, a, b);
      case 2:
        what_ += " gelu_tanh";
        return test.recorder.gated_activation(Activation::kGeluTanh, a, b);
      default:
        what_ += " soft_cap";
        return test.recorder.soft_cap(a, 30);
    }
  }

  std::pair<ValueId, ValueId> moe_route(TestPlan& test) {
    experts_ = 1 + random_.below(random_.below(4) == 0 ? 200 : 8);
    const std::int64_t top_k = 1 + random_.below(std::min<std::int64_t>(experts_, 8));
    what_ += fmt::format(" {} of {}", top_k, experts_);
    return test.recorder.moe_route(input(test, experts_), top_k, random_.below(2) == 0);
  }

  ValueId moe_ffn(TestPlan& test) {
    const std::int64_t hidden = columns(512);
    // Experts of more than 1024 add their units in groups of two.
    const std::int64_t intermediate = pick({0, 0, 1056, 1280}) + columns(256);
    const auto route = moe_route(test);
    const Format gate = format(hidden), up = format(hidden), down = format(intermediate);
    what_ += fmt::format(" experts {} {} {}, {} x {}", format_name(gate), format_name(up), format_name(down),
                         hidden, intermediate);
    const ValueId in = input(test, hidden);
    std::vector<MoeFfnOp::Expert> experts;
    for (std::int64_t i = 0; i < experts_; ++i) {
      if (i >= 8) {  // of many, the others are the same ones again
        experts.push_back(experts[static_cast<std::size_t>(i % 8)]);
        continue;
      }
      experts.push_back({matrix(test, gate, intermediate, hidden), matrix(test, up, intermediate, hidden),
                         matrix(test, down, hidden, intermediate)});
    }
    const Activation activation = random_.below(2) == 0 ? Activation::kSilu : Activation::kGeluTanh;
    return test.recorder.moe_ffn(in, route, activation, experts);
  }

  RandomFloats random_;
  BlockScales blocks_;
  std::int64_t rows_ = 0;
  std::int64_t experts_ = 0;
  std::string what_;
};

}  // namespace eider::test
