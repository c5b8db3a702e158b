// PublishedModel: one random BF16 model as a lab publishes it, a Hugging Face directory of two shards, and as
// a converter writes it, a GGUF file: other names, q and k rows of llama in interleaved order, gemma's norms
// with their 1, experts stacked, vectors in F32. Its projections may be FP8 in a third form. All are written
// from the formats' descriptions and share nothing with the readers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_writer.h"

namespace eider::test {

class PublishedModel {
 public:
  static constexpr std::int64_t kVocabSize = 480, kHiddenSize = 128, kLayers = 3;
  static constexpr std::int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 32, kIntermediateSize = 160;
  static constexpr std::int64_t kExperts = 6, kExpertsPerToken = 2, kExpertSize = 96;

  /// `architecture`: a model_type. `tied`: the embeddings are the head too. `fp8`: the weights of projections
  /// are values of e4m3 times a power of two for each block of 128 x 128, which BF16 holds exactly.
  PublishedModel(std::string_view architecture, bool tied, bool fp8 = false)
      : architecture_(architecture), tied_(tied), fp8_(fp8) {
    add("model.embed_tokens.weight", "token_embd.weight", {kVocabSize, kHiddenSize});
    if (!tied) add("lm_head.weight", "output.weight", {kVocabSize, kHiddenSize});
    add("model.norm.weight", "output_norm.weight", {kHiddenSize}, Kind::kNorm);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) add_layer(layer);
  }

  /// config.json, an index and two shards, the tensors by turns in the one and the other.
  void write_directory(const TempDir& directory) const {
    write_file(directory.file("config.json"), config().dump());
    Shards shards;
    for (const Tensor& tensor : tensors_)
      shards.add(tensor.published, "BF16", tensor.shape, bytes_of(tensor.values));
    shards.write(directory);
  }

  /// The same of a model with `fp8`: its projections as codes and scales.
  void write_fp8_directory(const TempDir& directory) const {
    nlohmann::json config = this->config();
    config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {kBlock, kBlock}}};
    write_file(directory.file("config.json"), config.dump());
    Shards shards;
    for (const Tensor& tensor : tensors_) {
      if (tensor.codes.empty()) {
        shards.add(tensor.published, "BF16", tensor.shape, bytes_of(tensor.values));
        continue;
      }
      shards.add(tensor.published, "F8_E4M3", tensor.shape, bytes_of(tensor.codes));
      shards.add(tensor.published + "_scale_inv", "F32",
                 {blocks_of(tensor.shape[0]), blocks_of(tensor.shape[1])}, bytes_of(tensor.scales));
    }
    shards.write(directory);
  }

  void write_gguf(const std::string& path) const {
    GgufWriter writer;
    write_metadata(writer);
    if (architecture_ == "llama") writer.tensor("rope_freqs.weight", {kHeadDim / 2}, rope_divisors());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = tensors_[i];
      if (tensor.kind == Kind::kExpert)
        i = write_experts(writer, i);
      else if (tensor.shape.size() == 1)
        writer.tensor(tensor.gguf, tensor.shape, as_floats(tensor));
      else
        writer.tensor(tensor.gguf, tensor.shape, Format::kBF16, bytes_of(in_gguf_order(tensor)));
    }
    writer.write(path);
  }

  /// The published configuration.
  nlohmann::json config() const {
    nlohmann::json config = {{"model_type", architecture_},
                             {"vocab_size", kVocabSize},
                             {"hidden_size", kHiddenSize},
                             {"intermediate_size", kIntermediateSize},
                             {"num_hidden_layers", kLayers},
                             {"num_attention_heads", kHeads},
                             {"num_key_value_heads", kKvHeads},
                             {"max_position_embeddings", 1024},
                             {"rms_norm_eps", 1e-6},
                             {"rope_theta", 1e6},
                             {"tie_word_embeddings", tied_},
                             {"torch_dtype", "bfloat16"}};
    if (architecture_ != "llama" && architecture_ != "qwen2") config["head_dim"] = kHeadDim;
    if (architecture_ == "llama")
      config["rope_scaling"] = {{"rope_type", "llama3"},
                                {"factor", kLlama3Factor},
                                {"low_freq_factor", kLowFreqFactor},
                                {"high_freq_factor", kHighFreqFactor},
                                {"original_max_position_embeddings", kOriginalPositions}};
    if (architecture_ == "qwen3")
      config["rope_scaling"] = {
          {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 256}};
    if (architecture_ == "qwen3_moe") {
      config["num_experts"] = kExperts;
      config["num_experts_per_tok"] = kExpertsPerToken;
      config["moe_intermediate_size"] = kExpertSize;
      config["norm_topk_prob"] = true;
    }
    if (is_gemma()) {
      config["hidden_activation"] = "gelu_pytorch_tanh";
      config["query_pre_attn_scalar"] = kHeadDim;
      config["sliding_window"] = kWindow;
      config["sliding_window_pattern"] = kWindowPattern;
      config["rope_local_base_freq"] = 1e4;
      config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
    }
    return config;
  }

 private:
  enum class Kind { kMatrix, kQueryRows, kKeyRows, kExpert, kVector, kNorm };

  struct Tensor {
    std::string published, gguf;
    std::vector<std::int64_t> shape;
    Kind kind;
    std::vector<std::uint16_t> values;  // BF16, in published order
    std::vector<std::uint8_t> codes;    // of FP8, empty: none
    std::vector<float> scales;          // of its blocks
  };

  class Shards {
   public:
    void add(const std::string& name, std::string_view dtype, const std::vector<std::int64_t>& shape,
             std::string_view data) {
      shards_[next_].tensor(name, dtype, shape, data);
      index_["weight_map"][name] = kNames[next_];
      next_ = 1 - next_;
    }
    void write(const TempDir& directory) const {
      for (std::size_t i = 0; i < 2; ++i) shards_[i].write(directory.file(kNames[i]));
      write_file(directory.file("model.safetensors.index.json"), index_.dump());
    }

   private:
    static constexpr const char* kNames[] = {"model-00001-of-00002.safetensors",
                                             "model-00002-of-00002.safetensors"};
    SafetensorsWriter shards_[2];
    nlohmann::json index_ = {{"metadata", nlohmann::json::object()}};
    std::size_t next_ = 0;
  };

  static constexpr std::int64_t kBlock = 128;
  static constexpr double kLlama3Factor = 8, kLowFreqFactor = 1, kHighFreqFactor = 4, kOriginalPositions = 64;
  static constexpr std::int64_t kWindow = 16, kWindowPattern = 2;

  bool is_gemma() const { return architecture_ == "gemma3_text"; }

  static float to_float(std::uint16_t bf16) {
    const std::uint32_t bits = static_cast<std::uint32_t>(bf16) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  static std::uint16_t to_bf16(float value) {  // rounded towards zero
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }

  static std::int64_t blocks_of(std::int64_t size) { return (size + kBlock - 1) / kBlock; }

  /// Rounded towards zero; `value` must be below 448 in magnitude.
  static std::uint8_t to_e4m3(float value) {
    const int sign = std::signbit(value) ? 0x80 : 0;
    int exponent;
    const float fraction = std::frexp(std::abs(value), &exponent);  // of 1/2..1
    if (exponent < -5) return static_cast<std::uint8_t>(sign | static_cast<int>(std::abs(value) * 0x1p9f));
    return static_cast<std::uint8_t>(sign | (exponent + 6) << 3 | (static_cast<int>(fraction * 16) - 8));
  }
  static float e4m3_value(std::uint8_t code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const float magnitude =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return (code & 0x80) != 0 ? -magnitude : magnitude;
  }

  static void round_to_fp8(Tensor& tensor) {
    const std::int64_t columns = tensor.shape[1], column_blocks = blocks_of(columns);
    for (std::int64_t block = 0; block < blocks_of(tensor.shape[0]) * column_blocks; ++block)
      tensor.scales.push_back(std::ldexp(1.0f, static_cast<int>(block % 3) - 11));
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t block = at / columns / kBlock * column_blocks + at % columns / kBlock;
      const float scale = tensor.scales[static_cast<std::size_t>(block)];
      tensor.codes.push_back(to_e4m3(to_float(tensor.values[i]) / scale));
      tensor.values[i] = to_bf16(e4m3_value(tensor.codes.back()) * scale);
    }
  }

  void add(const std::string& published, const std::string& gguf, const std::vector<std::int64_t>& shape,
           Kind kind = Kind::kMatrix) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : shape) elements *= dim;
    const bool vector = kind == Kind::kVector || kind == Kind::kNorm;
    const float reach = vector ? 0.5f : 2 / std::sqrt(static_cast<float>(shape.back()));
    const float middle = kind == Kind::kNorm && !is_gemma() ? 1.0f : 0.0f;
    Tensor tensor{published, gguf, shape, kind, {}, {}, {}};
    for (std::int64_t i = 0; i < elements; ++i) {
      const float value = middle + reach * (static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f);
      tensor.values.push_back(to_bf16(value));
    }
    if (fp8_ && published.ends_with("_proj.weight")) round_to_fp8(tensor);
    tensors_.push_back(std::move(tensor));
  }

  void add_layer(std::int64_t layer) {
    const std::string to = "model.layers." + std::to_string(layer) + ".";
    const std::string blk = "blk." + std::to_string(layer) + ".";
    const bool biased = architecture_ == "qwen2";
    struct Projection {
      const char *published, *gguf;
      std::int64_t rows;
      Kind kind;
    };
    for (const auto& [published, gguf, rows, kind] :
         {Projection{"q_proj", "attn_q", kHeads * kHeadDim, Kind::kQueryRows},
          Projection{"k_proj", "attn_k", kKvHeads * kHeadDim, Kind::kKeyRows},
          Projection{"v_proj", "attn_v", kKvHeads * kHeadDim, Kind::kMatrix}}) {
      add(to + "self_attn." + published + ".weight", blk + gguf + ".weight", {rows, kHiddenSize}, kind);
      if (biased) add(to + "self_attn." + published + ".bias", blk + gguf + ".bias", {rows}, Kind::kVector);
    }
    add(to + "self_attn.o_proj.weight", blk + "attn_output.weight", {kHiddenSize, kHeads * kHeadDim});
    add_norms(to, blk);
    if (architecture_ == "qwen3_moe")
      add_experts(to, blk);
    else
      for (const auto& [published, gguf] :
           {std::pair("gate_proj", "ffn_gate"), std::pair("up_proj", "ffn_up"),
            std::pair("down_proj", "ffn_down")})
        add(to + "mlp." + published + ".weight", blk + gguf + ".weight",
            published == std::string_view("down_proj") ? std::vector{kHiddenSize, kIntermediateSize}
                                                       : std::vector{kIntermediateSize, kHiddenSize});
  }

  void add_norms(const std::string& to, const std::string& blk) {
    const auto norm = [&](const std::string& published, const std::string& gguf, std::int64_t size) {
      add(to + published + ".weight", blk + gguf + ".weight", {size}, Kind::kNorm);
    };
    norm("input_layernorm", "attn_norm", kHiddenSize);
    if (is_gemma()) {
      norm("post_attention_layernorm", "post_attention_norm", kHiddenSize);
      norm("pre_feedforward_layernorm", "ffn_norm", kHiddenSize);
      norm("post_feedforward_layernorm", "post_ffw_norm", kHiddenSize);
    } else {
      norm("post_attention_layernorm", "ffn_norm", kHiddenSize);
    }
    if (architecture_ == "llama" || architecture_ == "qwen2") return;
    norm("self_attn.q_norm", "attn_q_norm", kHeadDim);
    norm("self_attn.k_norm", "attn_k_norm", kHeadDim);
  }

  void add_experts(const std::string& to, const std::string& blk) {
    add(to + "mlp.gate.weight", blk + "ffn_gate_inp.weight", {kExperts, kHiddenSize});
    for (const auto& [published, gguf] :
         {std::pair("gate_proj", "ffn_gate_exps"), std::pair("up_proj", "ffn_up_exps"),
          std::pair("down_proj", "ffn_down_exps")})
      for (std::int64_t expert = 0; expert < kExperts; ++expert)
        add(to + "mlp.experts." + std::to_string(expert) + "." + published + ".weight",
            blk + gguf + ".weight",
            published == std::string_view("down_proj") ? std::vector{kHiddenSize, kExpertSize}
                                                       : std::vector{kExpertSize, kHiddenSize},
            Kind::kExpert);
  }

  /// The kExperts tensors from `first` on, as one; returns the index of the last.
  std::size_t write_experts(GgufWriter& writer, std::size_t first) const {
    std::string data;
    const std::size_t last = first + kExperts - 1;
    for (std::size_t i = first; i <= last; ++i) data += bytes_of(tensors_[i].values);
    const std::vector<std::int64_t>& shape = tensors_[first].shape;
    writer.tensor(tensors_[first].gguf, {kExperts, shape[0], shape[1]}, Format::kBF16, data);
    return last;
  }

  std::vector<float> as_floats(const Tensor& tensor) const {
    std::vector<float> values;
    for (const std::uint16_t value : tensor.values)
      values.push_back(to_float(value) + (tensor.kind == Kind::kNorm && is_gemma() ? 1.0f : 0.0f));
    return values;
  }

  /// llama's converter: of each head, row i of the first half and row i of the second become neighbours.
  std::vector<std::uint16_t> in_gguf_order(const Tensor& tensor) const {
    if (architecture_ != "llama" || (tensor.kind != Kind::kQueryRows && tensor.kind != Kind::kKeyRows))
      return tensor.values;
    std::vector<std::uint16_t> values;
    for (std::int64_t head = 0; head < tensor.shape[0] / kHeadDim; ++head)
      for (std::int64_t row = 0; row < kHeadDim; ++row) {
        const std::int64_t published_row = head * kHeadDim + row % 2 * (kHeadDim / 2) + row / 2;
        const auto begin = tensor.values.begin() + published_row * kHiddenSize;
        values.insert(values.end(), begin, begin + kHiddenSize);
      }
    return values;
  }

  /// llama3's scaling as the divisors of the frequencies, in long double and rounded once.
  std::vector<float> rope_divisors() const {
    std::vector<float> divisors;
    for (std::int64_t i = 0; i < kHeadDim / 2; ++i) {
      const long double exponent = 2.0L * static_cast<long double>(i) / static_cast<long double>(kHeadDim);
      const long double wavelength = 2 * std::acos(-1.0L) * std::pow(1e6L, exponent);
      const long double turns = kOriginalPositions / wavelength;
      long double divisor = 1;
      if (turns < kLowFreqFactor) {
        divisor = kLlama3Factor;
      } else if (turns <= kHighFreqFactor) {
        const long double smooth = (turns - kLowFreqFactor) / (kHighFreqFactor - kLowFreqFactor);
        divisor = 1 / ((1 - smooth) / kLlama3Factor + smooth);
      }
      divisors.push_back(static_cast<float>(divisor));
    }
    return divisors;
  }

  void write_metadata(GgufWriter& writer) const {
    const std::string name = is_gemma()                     ? "gemma3"
                             : architecture_ == "qwen3_moe" ? "qwen3moe"
                                                            : architecture_;
    const auto number = [&](const std::string& key, std::int64_t value) {
      writer.metadata(name + "." + key, static_cast<std::uint32_t>(value));
    };
    writer.metadata("general.architecture", name);
    number("block_count", kLayers);
    number("context_length", 1024);
    number("embedding_length", kHiddenSize);
    number("feed_forward_length", kIntermediateSize);
    number("attention.head_count", kHeads);
    number("attention.head_count_kv", kKvHeads);
    number("attention.key_length", kHeadDim);
    number("attention.value_length", kHeadDim);
    writer.metadata(name + ".attention.layer_norm_rms_epsilon", 1e-6f);
    writer.metadata(name + ".rope.freq_base", 1e6f);
    if (architecture_ == "qwen3") {
      writer.metadata(name + ".rope.scaling.type", "yarn");
      writer.metadata(name + ".rope.scaling.factor", 4.0f);
      number("rope.scaling.original_context_length", 256);
    }
    if (architecture_ == "qwen3_moe") {
      number("expert_count", kExperts);
      number("expert_used_count", kExpertsPerToken);
      number("expert_feed_forward_length", kExpertSize);
    }
    if (is_gemma()) {
      number("attention.sliding_window", kWindow);
      number("attention.sliding_window_pattern", kWindowPattern);
      writer.metadata(name + ".rope.scaling.type", "linear");
      writer.metadata(name + ".rope.scaling.factor", 8.0f);
    }
  }

  std::string architecture_;
  bool tied_, fp8_;
  std::vector<Tensor> tensors_;
  std::mt19937 random_{20261130};
};

}  // namespace eider::test
