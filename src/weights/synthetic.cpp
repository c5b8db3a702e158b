#include "weights/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/random.h"
#include "format/storage_format.h"
#include "weights/checkpoint_builder.h"
#include "weights/gguf_names.h"
#include "weights/gguf_tensors.h"
#include "weights/random_weights.h"
#include "weights/safetensors_writer.h"
#include "weights/transforms.h"

namespace eider {
namespace {

/// kEnd: the embedding and the head, which FP8 checkpoints publish as BF16.
enum class Kind : std::uint8_t { kMatrix, kRouter, kNorm, kEnd };

constexpr std::int64_t kScaleBlock = 128;

/// A tensor that the model must have.
struct Wanted {
  std::string name;
  Kind kind;
  Shape shape;
};

std::int64_t blocks_of(std::int64_t size) {
  return (size + kScaleBlock - 1) / kScaleBlock;
}
/// Blocks of a matrix, or of one for each expert.
std::int64_t scale_count(const Shape& shape) {
  const std::int64_t rows = shape[shape.rank() - 2];
  return shape.rows() / rows * blocks_of(rows) * blocks_of(shape.columns());
}

/// The tensors of one layer, "blk.N." in front.
void want_layer(const ModelShape& m, std::int64_t layer, std::vector<Wanted>& wanted) {
  const auto want = [&](const char* name, Kind kind, const Shape& shape) {
    wanted.push_back({fmt::format("blk.{}.{}.weight", layer, name), kind, shape});
  };
  const std::int64_t hidden = m.hidden_size;
  const std::int64_t q_width = m.num_attention_heads * m.head_dim;
  const std::int64_t kv_width = m.num_key_value_heads * m.head_dim;
  want("attn_norm", Kind::kNorm, {hidden});
  want("attn_q", Kind::kMatrix, {q_width, hidden});
  want("attn_k", Kind::kMatrix, {kv_width, hidden});
  want("attn_v", Kind::kMatrix, {kv_width, hidden});
  want("attn_output", Kind::kMatrix, {hidden, q_width});
  if (m.architecture != "llama") {
    want("attn_q_norm", Kind::kNorm, {m.head_dim});
    want("attn_k_norm", Kind::kNorm, {m.head_dim});
  }
  if (m.architecture == "gemma3") {
    want("post_attention_norm", Kind::kNorm, {hidden});
    want("post_ffw_norm", Kind::kNorm, {hidden});
  }
  want("ffn_norm", Kind::kNorm, {hidden});
  if (m.num_experts == 0) {
    want("ffn_gate", Kind::kMatrix, {m.intermediate_size, hidden});
    want("ffn_up", Kind::kMatrix, {m.intermediate_size, hidden});
    want("ffn_down", Kind::kMatrix, {hidden, m.intermediate_size});
  } else {
    want("ffn_gate_inp", Kind::kRouter, {m.num_experts, hidden});
    want("ffn_gate_exps", Kind::kMatrix, {m.num_experts, m.moe_intermediate_size, hidden});
    want("ffn_up_exps", Kind::kMatrix, {m.num_experts, m.moe_intermediate_size, hidden});
    want("ffn_down_exps", Kind::kMatrix, {m.num_experts, hidden, m.moe_intermediate_size});
  }
}

std::vector<Wanted> wanted_tensors(const ModelShape& m, Format format) {
  const Kind ends = format == Format::kFP8_E4M3 ? Kind::kEnd : Kind::kMatrix;
  std::vector<Wanted> wanted = {{"token_embd.weight", ends, {m.vocab_size, m.hidden_size}},
                                {"output_norm.weight", Kind::kNorm, {m.hidden_size}}};
  if (!m.tie_word_embeddings) wanted.push_back({"output.weight", ends, {m.vocab_size, m.hidden_size}});
  for (std::int64_t layer = 0; layer < m.num_hidden_layers; ++layer) want_layer(m, layer, wanted);
  return wanted;
}

/// Random weights that tensors of one kind are cut from.
class Stretch {
 public:
  /// Long enough for the largest of `wanted` that is of `kind`.
  static Result<Stretch> create(Kind kind, const std::vector<Wanted>& wanted, const SyntheticSpec& spec,
                                ThreadPool& pool) {
    const Format format = kind == Kind::kMatrix ? spec.format
                          : kind == Kind::kEnd  ? Format::kBF16
                                                : Format::kF32;
    std::int64_t largest = 0;
    for (const Wanted& tensor : wanted)
      if (tensor.kind == kind)
        largest = std::max(largest, tensor.shape.elements() / format_block_elems(format));
    // So much longer that tensors begin in different places and reading them in turn is no reading of a
    // cache.
    constexpr std::int64_t kRoom = std::int64_t{64} << 20;
    const std::int64_t room = kind == Kind::kNorm ? largest : kRoom / format_block_bytes(format);
    const std::int64_t blocks = largest == 0 ? 0 : largest + room;
    EIDER_TRY(Buffer memory, Buffer::allocate(static_cast<std::size_t>(blocks * format_block_bytes(format))));
    const std::uint64_t seed = spec.seed + (static_cast<std::uint64_t>(kind) << 32);
    fill_random_weights(format, seed, blocks, memory.data(), pool);
    if (kind == Kind::kNorm) {
      auto* factor = reinterpret_cast<float*>(memory.data());
      for (std::int64_t i = 0; i < blocks; ++i) factor[i] = 1.0F + 5 * factor[i];
    }
    return Stretch{format, blocks, seed, std::make_shared<const Buffer>(std::move(memory))};
  }

  /// Tensor `index` of the model, of this kind.
  TensorView cut(const Wanted& tensor, std::size_t index) const {
    const std::int64_t length = tensor.shape.elements() / format_block_elems(format);
    const double draw = uniform_draw(seed, index, 0);
    const auto begin = static_cast<std::int64_t>(draw * static_cast<double>(blocks - length));
    return {tensor.name, format, tensor.shape, memory->data() + begin * format_block_bytes(format)};
  }

  Format format;
  std::int64_t blocks;
  std::uint64_t seed;
  std::shared_ptr<const Buffer> memory;
};

/// Scales of FP8 matrices in blocks as published, 0.75 to 1.25 times what gives weights their deviation: each
/// matrix has as many of the first ones as it needs.
Result<Buffer> make_scales(const std::vector<Wanted>& wanted, std::uint64_t seed) {
  std::int64_t count = 0;
  for (const Wanted& tensor : wanted)
    if (tensor.kind == Kind::kMatrix) count = std::max(count, scale_count(tensor.shape));
  EIDER_TRY(Buffer buffer, Buffer::allocate(static_cast<std::size_t>(count) * sizeof(float)));
  auto* scales = reinterpret_cast<float*>(buffer.data());
  for (std::int64_t i = 0; i < count; ++i)
    scales[i] = kRandomFp8Scale *
                static_cast<float>(0.75 + 0.5 * uniform_draw(seed, static_cast<std::uint64_t>(i), 1));
  return buffer;
}

nlohmann::json published_config(const ModelShape& m, std::string_view model_type) {
  nlohmann::json config = {{"model_type", model_type},
                           {"vocab_size", m.vocab_size},
                           {"hidden_size", m.hidden_size},
                           {"intermediate_size", m.intermediate_size},
                           {"num_hidden_layers", m.num_hidden_layers},
                           {"num_attention_heads", m.num_attention_heads},
                           {"num_key_value_heads", m.num_key_value_heads},
                           {"head_dim", m.head_dim},
                           {"max_position_embeddings", m.max_position_embeddings},
                           {"rms_norm_eps", m.rms_norm_eps},
                           {"rope_theta", m.rope_theta},
                           {"tie_word_embeddings", m.tie_word_embeddings}};
  if (m.num_experts > 0) {
    config["num_experts"] = m.num_experts;
    config["num_experts_per_tok"] = m.num_experts_per_tok;
    config["moe_intermediate_size"] = m.moe_intermediate_size;
    config["norm_topk_prob"] = true;
  }
  if (m.architecture == "gemma3") {
    config["hidden_activation"] = "gelu_pytorch_tanh";
    config["sliding_window"] = m.sliding_window;
    config["query_pre_attn_scalar"] = m.head_dim;
  }
  if (m.rope_linear_factor > 0)
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", m.rope_linear_factor}};
  return config;
}

}  // namespace

Result<SyntheticModel> SyntheticModel::create(const SyntheticSpec& spec, ThreadPool& pool) {
  ModelShape shape = spec.shape;
  if (spec.layers < 0 || spec.layers > shape.num_hidden_layers)
    return error("{}: {} layers asked for, but the shape has {}", shape.name, spec.layers,
                 shape.num_hidden_layers);
  const bool cut = spec.layers > 0 && spec.layers < shape.num_hidden_layers;
  if (cut) shape.num_hidden_layers = spec.layers;
  SyntheticModel model(shape, spec.format,
                       fmt::format("{}{} {}", shape.name, cut ? fmt::format(" {} layers", spec.layers) : "",
                                   format_name(spec.format)));

  const std::vector<Wanted> wanted = wanted_tensors(shape, spec.format);
  const std::int64_t block = format_block_elems(spec.format);
  for (const Wanted& tensor : wanted)
    if (tensor.kind == Kind::kMatrix && tensor.shape.columns() % block != 0)
      return error("{}: {} needs a multiple of {} columns, but {} is {}", model.name_,
                   format_name(spec.format), block, tensor.name, tensor.shape.text());
  std::vector<Stretch> stretches;  // by Kind
  for (const Kind kind : {Kind::kMatrix, Kind::kRouter, Kind::kNorm, Kind::kEnd}) {
    EIDER_TRY(Stretch stretch, Stretch::create(kind, wanted, spec, pool).context(model.name_));
    model.stretches_.push_back(stretch.memory);
    stretches.push_back(std::move(stretch));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    model.tensors_.push_back(stretches[static_cast<std::size_t>(wanted[i].kind)].cut(wanted[i], i));
  if (spec.format != Format::kFP8_E4M3) return model;
  EIDER_TRY(Buffer scales, make_scales(wanted, spec.seed));
  for (TensorView& tensor : model.tensors_)
    if (tensor.format == Format::kFP8_E4M3)
      tensor.scales = {reinterpret_cast<const float*>(scales.data()), kScaleBlock, kScaleBlock,
                       blocks_of(tensor.columns())};
  model.stretches_.push_back(std::make_shared<const Buffer>(std::move(scales)));
  return model;
}

Result<std::shared_ptr<const Checkpoint>> SyntheticModel::checkpoint() const {
  const GgufArchitecture* architecture = find_gguf_architecture(shape_.architecture);
  EIDER_CHECK(architecture != nullptr);
  CheckpointBuilder builder(name_, "synthetic",
                            Config(published_config(shape_, architecture->model_type), name_));
  for (const std::shared_ptr<const Buffer>& stretch : stretches_) builder.keep(stretch);
  EIDER_TRY(GgufTensors tensors, GgufTensors::create(*architecture, builder));
  for (const TensorView& tensor : tensors_) EIDER_TRY_STATUS(tensors.add(tensor));
  return std::move(builder).finish();
}

Status SyntheticModel::write(const std::string& path, const WriteProgress& progress) const {
  return format_ == Format::kFP8_E4M3 ? write_directory(path, progress) : write_gguf(path, progress);
}

Status SyntheticModel::write_directory(const std::string& path, const WriteProgress& progress) const {
  EIDER_TRY(const std::shared_ptr<const Checkpoint> published, checkpoint());
  nlohmann::json config = published->config().json();
  const bool gemma3 = shape_.architecture == "gemma3";
  if (!gemma3) config["hidden_act"] = "silu";
  config["torch_dtype"] = "bfloat16";
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"activation_scheme", "dynamic"},
                                   {"weight_block_size", {kScaleBlock, kScaleBlock}}};
  std::vector<TensorView> tensors;
  std::vector<OwnedTensor> norms;
  for (const auto& [name, tensor] : published->tensors()) {
    if (!gemma3 || !name.ends_with("norm.weight")) {
      tensors.push_back(tensor);
      continue;
    }
    EIDER_TRY(OwnedTensor norm, minus_one(tensor));
    tensors.push_back(norms.emplace_back(std::move(norm)).view);
  }
  return write_model_directory(path, config, tensors, progress);
}

}  // namespace eider
