#include "weights/gguf_names.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "weights/printable.h"

namespace eider {
namespace {

constexpr GgufName kWholeModel[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

// Only llama's converter stores rotary scaling as a tensor.
constexpr GgufName kRopeDivisors[] = {{"rope_freqs.weight", "rope_freqs.weight"}};

constexpr GgufName kAttention[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", GgufRole::kQueryRows},
    {"attn_q.bias", "self_attn.q_proj.bias", GgufRole::kQueryRows},
    {"attn_k.weight", "self_attn.k_proj.weight", GgufRole::kKeyRows},
    {"attn_k.bias", "self_attn.k_proj.bias", GgufRole::kKeyRows},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_qkv.weight", "weight", GgufRole::kFusedQkv},
    {"attn_qkv.bias", "bias", GgufRole::kFusedQkv},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias"},
    {"attn_rot_embd.weight", "", GgufRole::kIgnored},
};

constexpr GgufName kTwoNorms[] = {{"ffn_norm.weight", "post_attention_layernorm.weight"}};

constexpr GgufName kTwoNormsAndHeadNorms[] = {
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
};

constexpr GgufName kFourNormsAndHeadNorms[] = {
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
};

constexpr GgufName kDense[] = {
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

constexpr GgufName kExperts[] = {
    {"ffn_gate_inp.weight", "mlp.gate.weight"},
    {"ffn_gate_exps.weight", "gate_proj", GgufRole::kExperts},
    {"ffn_up_exps.weight", "up_proj", GgufRole::kExperts},
    {"ffn_down_exps.weight", "down_proj", GgufRole::kExperts},
    {"ffn_gate_up_exps.weight", "", GgufRole::kGateUpExperts},
};

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "llama", true, false, kRopeDivisors, kTwoNorms, kDense},
    {"qwen2", "qwen2", false, false, {}, kTwoNorms, kDense},
    {"qwen3", "qwen3", false, false, {}, kTwoNormsAndHeadNorms, kDense},
    {"qwen3moe", "qwen3_moe", false, false, {}, kTwoNormsAndHeadNorms, kExperts},
    {"gemma3", "gemma3_text", false, true, {}, kFourNormsAndHeadNorms, kDense},
};

/// Looks `name` up in the tables, in their order.
template <std::size_t N>
const GgufName* find_name(const std::array<std::span<const GgufName>, N>& tables, std::string_view name) {
  for (const std::span<const GgufName> table : tables) {
    const auto found = std::ranges::find(table, name, &GgufName::gguf);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

Error unknown_tensor(const GgufArchitecture& architecture, std::string_view gguf_name) {
  return error("tensor {} is not one that a {} model has", printable(gguf_name), architecture.name);
}

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto* found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

const GgufArchitecture* find_published_architecture(std::string_view model_type) {
  const auto* found = std::ranges::find(kArchitectures, model_type, &GgufArchitecture::model_type);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string gguf_architecture_names() {
  std::string names;
  for (const GgufArchitecture& architecture : kArchitectures)
    names += (names.empty() ? "" : ", ") + std::string(architecture.name);
  return names;
}

Result<GgufTarget> find_gguf_target(const GgufArchitecture& architecture, std::string_view gguf_name,
                                    std::int64_t num_hidden_layers) {
  constexpr std::string_view kLayerPrefix = "blk.";
  if (!gguf_name.starts_with(kLayerPrefix)) {
    const GgufName* found =
        find_name(std::array{std::span<const GgufName>(kWholeModel), architecture.whole_model}, gguf_name);
    if (found == nullptr) return unknown_tensor(architecture, gguf_name);
    return GgufTarget{"", *found};
  }

  const char* begin = gguf_name.data() + kLayerPrefix.size();
  const char* end = gguf_name.data() + gguf_name.size();
  std::int64_t layer = 0;
  const auto [dot, problem] = std::from_chars(begin, end, layer);
  if (problem != std::errc() || layer < 0 || dot == end || *dot != '.')
    return unknown_tensor(architecture, gguf_name);
  const GgufName* found = find_name(
      std::array{std::span<const GgufName>(kAttention), architecture.layer_norms, architecture.feed_forward},
      std::string_view(dot + 1, static_cast<std::size_t>(end - dot - 1)));
  if (found == nullptr) return unknown_tensor(architecture, gguf_name);
  if (layer >= num_hidden_layers)
    return error("tensor {} is beyond the model's {} layers", printable(gguf_name), num_hidden_layers);
  return GgufTarget{fmt::format("model.layers.{}.", layer), *found};
}

}  // namespace eider
