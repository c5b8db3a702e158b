// Small random models as GGUF files, every matrix in one storage format: for exactness tests of whole models.
// The text of such a model is noise; its arithmetic is a real model's.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "format/storage_format.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/quantize.h"

namespace eider::test {

class RandomModel {
 public:
  static constexpr std::int64_t kHiddenSize = 256;
  static constexpr std::int64_t kVocabSize = 480;
  static constexpr std::int64_t kLayers = 2;
  static constexpr std::int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 64;
  static constexpr std::int64_t kIntermediateSize = 512;
  static constexpr std::int64_t kExperts = 8, kExpertsPerToken = 3, kExpertSize = 256;

  /// A qwen3 model, or a qwen3moe one, with its matrices in `format`.
  RandomModel(Format format, bool moe) : format_(format), arch_(moe ? "qwen3moe" : "qwen3") {
    metadata(moe);
    matrix("token_embd.weight", {kVocabSize, kHiddenSize});
    matrix("output.weight", {kVocabSize, kHiddenSize});
    norm("output_norm.weight", kHiddenSize);
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string blk = "blk." + std::to_string(layer) + ".";
      norm(blk + "attn_norm.weight", kHiddenSize);
      norm(blk + "ffn_norm.weight", kHiddenSize);
      norm(blk + "attn_q_norm.weight", kHeadDim);
      norm(blk + "attn_k_norm.weight", kHeadDim);
      matrix(blk + "attn_q.weight", {kHeads * kHeadDim, kHiddenSize});
      matrix(blk + "attn_k.weight", {kKvHeads * kHeadDim, kHiddenSize});
      matrix(blk + "attn_v.weight", {kKvHeads * kHeadDim, kHiddenSize});
      matrix(blk + "attn_output.weight", {kHiddenSize, kHeads * kHeadDim});
      if (moe) {
        writer_.tensor(blk + "ffn_gate_inp.weight", {kExperts, kHiddenSize},
                       normal(kExperts * kHiddenSize, 1 / std::sqrt(static_cast<float>(kHiddenSize))));
        matrix(blk + "ffn_gate_exps.weight", {kExperts, kExpertSize, kHiddenSize});
        matrix(blk + "ffn_up_exps.weight", {kExperts, kExpertSize, kHiddenSize});
        matrix(blk + "ffn_down_exps.weight", {kExperts, kHiddenSize, kExpertSize});
      } else {
        matrix(blk + "ffn_gate.weight", {kIntermediateSize, kHiddenSize});
        matrix(blk + "ffn_up.weight", {kIntermediateSize, kHiddenSize});
        matrix(blk + "ffn_down.weight", {kHiddenSize, kIntermediateSize});
      }
    }
  }

  /// Names how its states become embeddings: GGUF's number of a pooling.
  RandomModel& pooling_type(std::uint32_t type) {
    writer_.metadata(arch_ + ".pooling_type", type);
    return *this;
  }

  void write(const std::string& path) const { writer_.write(path); }

 private:
  void metadata(bool moe) {
    const auto number = [&](const std::string& key, std::int64_t value) {
      writer_.metadata(arch_ + "." + key, static_cast<std::uint32_t>(value));
    };
    writer_.metadata("general.architecture", arch_);
    number("block_count", kLayers);
    number("context_length", 2048);
    number("embedding_length", kHiddenSize);
    number("feed_forward_length", kIntermediateSize);
    number("attention.head_count", kHeads);
    number("attention.head_count_kv", kKvHeads);
    number("attention.key_length", kHeadDim);
    number("attention.value_length", kHeadDim);
    writer_.metadata(arch_ + ".attention.layer_norm_rms_epsilon", 1e-6f);
    writer_.metadata(arch_ + ".rope.freq_base", 1e6f);
    if (!moe) return;
    number("expert_count", kExperts);
    number("expert_used_count", kExpertsPerToken);
    number("expert_feed_forward_length", kExpertSize);
  }

  /// Nearly normal: sums of four uniform numbers, which are the same on every machine.
  std::vector<float> normal(std::int64_t count, float deviation, float mean = 0) {
    const float step = deviation * 0x1.bb67aep-16f;  // sqrt(3) / 2^16
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
      const std::uint32_t a = random_(), b = random_();
      const std::uint32_t sum = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);
      value = mean + step * (static_cast<float>(sum) - 131070.0f);
    }
    return values;
  }

  void norm(const std::string& name, std::int64_t size) {
    writer_.tensor(name, {size}, normal(size, 0.1f, 1.0f));
  }

  void matrix(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : shape) elements *= dim;
    const float deviation = 1.2f / std::sqrt(static_cast<float>(shape.back()));
    const std::vector<std::byte> bytes = quantize_row(format_, normal(elements, deviation));
    writer_.tensor(name, shape, format_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  Format format_;
  std::string arch_;
  GgufWriter writer_;
  std::mt19937 random_{20261129};
};

}  // namespace eider::test
