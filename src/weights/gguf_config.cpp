#include "weights/gguf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "weights/checkpoint_builder.h"
#include "weights/printable.h"

namespace eider {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostSize = std::int64_t{1} << 30;

/// Fills a published configuration from the metadata under one architecture's prefix.
class ConfigReader {
 public:
  ConfigReader(const GgufArchitecture& architecture, const std::vector<GgufPart>& parts)
      : architecture_(architecture), parts_(parts), file_(parts.front().header) {}

  Result<json> read() {
    config_ = {{"model_type", architecture_.model_type}};
    EIDER_TRY_STATUS(refuse_unsupported());
    EIDER_TRY_STATUS(read_sizes());
    EIDER_TRY_STATUS(read_attention());
    EIDER_TRY_STATUS(read_rope_scaling());
    if (architecture_.model_type == "qwen3_moe") EIDER_TRY_STATUS(read_experts());
    if (architecture_.model_type == "gemma3_text") EIDER_TRY_STATUS(read_gemma3());
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_.name, name); }

  /// A number for the whole model; some writers give one for each layer, which must then be equal.
  Result<std::optional<std::int64_t>> integer(std::string_view name) const {
    const std::string full = key(name);
    const GgufValue* value = file_.find(full);
    if (value == nullptr || !value->is_array()) return file_.integer(full);
    EIDER_TRY(const auto layers, value->integers().context(fmt::format("metadata key {}", full)));
    if (layers.empty()) return std::optional<std::int64_t>();
    if (std::ranges::any_of(layers, [&](std::int64_t layer) { return layer != layers.front(); }))
      return error("metadata key {}: values that differ from layer to layer are not supported", full);
    return std::optional<std::int64_t>(layers.front());
  }

  /// Sizes and counts, at least 1; 0 stands for none where a key may be absent.
  Status copy_size(const char* published, std::string_view name, std::int64_t most = kMostSize) {
    EIDER_TRY(const auto value, integer(name));
    if (!value || *value == 0) return {};
    if (*value < 0 || *value > most)
      return error("metadata key {}: {} is outside 1 to {}", key(name), *value, most);
    config_[published] = *value;
    return {};
  }

  Status require_size(const char* published, std::string_view name, std::int64_t most = kMostSize) {
    EIDER_TRY_STATUS(copy_size(published, name, most));
    if (!config_.contains(published)) return error("metadata key {} is missing", key(name));
    return {};
  }

  Status copy_number(const char* published, std::string_view name) {
    EIDER_TRY(const auto value, file_.number(key(name)));
    if (value) config_[published] = *value;
    return {};
  }

  /// Settings of related models that would change every result: only their neutral values pass.
  Status refuse_unsupported() const {
    struct Neutral {
      std::string_view name;
      double value;
    };
    constexpr Neutral kNeutral[] = {{"attention.scale", 0},
                                    {"attention.clamp_kqv", 0},
                                    {"attention.temperature_scale", 0},
                                    {"logit_scale", 1},
                                    {"embedding_scale", 1},
                                    {"residual_scale", 1},
                                    {"rope.scaling.attn_factor", 1},
                                    {"rope.scaling.yarn_attn_factor", 1},
                                    {"rope.scaling.yarn_ext_factor", 1}};
    for (const Neutral& neutral : kNeutral) {
      EIDER_TRY(const auto value, file_.number(key(neutral.name)));
      if (value && *value != neutral.value)
        return error("metadata key {}: {} is not supported", key(neutral.name), *value);
    }
    EIDER_TRY(const auto causal, file_.boolean(key("attention.causal")));
    if (!causal.value_or(true))
      return error("metadata key {}: false is not supported", key("attention.causal"));
    return {};
  }

  Status read_sizes() {
    EIDER_TRY_STATUS(require_size("num_hidden_layers", "block_count"));
    EIDER_TRY_STATUS(require_size("max_position_embeddings", "context_length"));
    EIDER_TRY_STATUS(require_size("hidden_size", "embedding_length"));
    EIDER_TRY_STATUS(copy_size("intermediate_size", "feed_forward_length"));
    EIDER_TRY_STATUS(copy_number("rms_norm_eps", "attention.layer_norm_rms_epsilon"));

    const TensorView* embeddings = find_tensor(parts_, "token_embd.weight");
    if (embeddings == nullptr || embeddings->shape.rank() != 2)
      return error("no tensor token_embd.weight of two dimensions: the file has no weights");
    config_["vocab_size"] = embeddings->shape[0];
    config_["tie_word_embeddings"] = find_tensor(parts_, "output.weight") == nullptr;
    return {};
  }

  Status read_attention() {
    EIDER_TRY_STATUS(require_size("num_attention_heads", "attention.head_count"));
    config_["num_key_value_heads"] = config_["num_attention_heads"];
    EIDER_TRY_STATUS(copy_size("num_key_value_heads", "attention.head_count_kv"));
    EIDER_TRY_STATUS(copy_size("head_dim", "attention.key_length"));
    EIDER_TRY_STATUS(copy_size("sliding_window", "attention.sliding_window"));
    config_["rope_theta"] = 1e4;
    EIDER_TRY_STATUS(copy_number("rope_theta", "rope.freq_base"));

    for (const std::string_view equal : {"attention.value_length", "rope.dimension_count"}) {
      EIDER_TRY(const auto value, integer(equal));
      if (value && *value != head_dim())
        return error("metadata key {}: {} differs from the head dimension {}, which is not supported",
                     key(equal), *value, head_dim());
    }
    return {};
  }

  std::int64_t head_dim() const {
    if (config_.contains("head_dim")) return config_["head_dim"].get<std::int64_t>();
    return config_["hidden_size"].get<std::int64_t>() / config_["num_attention_heads"].get<std::int64_t>();
  }

  Status read_rope_scaling() {
    EIDER_TRY(const auto stored_type, file_.string(key("rope.scaling.type")));
    EIDER_TRY(auto factor, file_.number(key("rope.scaling.factor")));
    if (!factor) {
      EIDER_TRY(factor, file_.number(key("rope.scale_linear")));  // of early files
    }
    const std::string_view type = stored_type.value_or(factor ? "linear" : "none");
    if (type == "none" || (type == "linear" && factor.value_or(1) == 1)) return {};
    if (type != "linear" && type != "yarn")
      return error("metadata key {}: {} is not supported; none, linear and yarn are",
                   key("rope.scaling.type"), printable(type));
    if (!factor || !(*factor > 0))
      return error("metadata key {}: missing or not positive", key("rope.scaling.factor"));

    json scaling = {{"rope_type", type}, {"factor", *factor}};
    if (type == "yarn") {
      EIDER_TRY(const auto original, integer("rope.scaling.original_context_length"));
      scaling["original_max_position_embeddings"] =
          original ? json(*original) : config_["max_position_embeddings"];
      for (const char* beta : {"beta_fast", "beta_slow"}) {
        EIDER_TRY(const auto value, file_.number(key(fmt::format("rope.scaling.yarn_{}", beta))));
        if (value) scaling[beta] = *value;
      }
    }
    config_["rope_scaling"] = std::move(scaling);
    return {};
  }

  Status read_experts() {
    EIDER_TRY_STATUS(require_size("num_experts", "expert_count", kMostExperts));
    EIDER_TRY_STATUS(require_size("num_experts_per_tok", "expert_used_count"));
    config_["norm_topk_prob"] = true;  // of every published model; GGUF has no key for it
    EIDER_TRY_STATUS(copy_size("moe_intermediate_size", "expert_feed_forward_length"));
    if (!config_.contains("moe_intermediate_size")) {  // early files
      const TensorView* down = find_tensor(parts_, "blk.0.ffn_down_exps.weight");
      if (down == nullptr) return error("metadata key {} is missing", key("expert_feed_forward_length"));
      config_["moe_intermediate_size"] = down->columns();
    }
    if (!config_.contains("intermediate_size"))
      config_["intermediate_size"] = config_["moe_intermediate_size"];
    return {};
  }

  Status read_gemma3() {
    config_["hidden_activation"] = "gelu_pytorch_tanh";
    config_["rope_local_base_freq"] = 1e4;
    EIDER_TRY_STATUS(copy_number("rope_local_base_freq", "rope.freq_base_swa"));
    EIDER_TRY_STATUS(copy_number("attn_logit_softcapping", "attn_logit_softcapping"));
    EIDER_TRY_STATUS(copy_number("final_logit_softcapping", "final_logit_softcapping"));
    // GGUF has no key for it. The 27B model, told by its layers, scales by hidden_size / heads instead.
    const bool is_27b = config_["num_hidden_layers"] == 62;
    config_["query_pre_attn_scalar"] = is_27b ? config_["hidden_size"].get<std::int64_t>() /
                                                    config_["num_attention_heads"].get<std::int64_t>()
                                              : head_dim();
    return read_sliding_window_pattern();
  }

  /// A period, or for each layer whether it has a window.
  Status read_sliding_window_pattern() {
    const std::string full = key("attention.sliding_window_pattern");
    config_["sliding_window_pattern"] = 6;
    const GgufValue* value = file_.find(full);
    if (value == nullptr || !value->is_array())
      return copy_size("sliding_window_pattern", "attention.sliding_window_pattern");
    EIDER_TRY(const auto windowed, value->integers().context(fmt::format("metadata key {}", full)));
    json layer_types = json::array();
    for (const std::int64_t layer : windowed)
      layer_types.push_back(layer != 0 ? "sliding_attention" : "full_attention");
    config_["layer_types"] = std::move(layer_types);
    return {};
  }

  const GgufArchitecture& architecture_;
  const std::vector<GgufPart>& parts_;
  const GgufFile& file_;
  json config_;
};

}  // namespace

Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file) {
  EIDER_TRY(const auto name, file.string("general.architecture"));
  if (!name) return error("metadata key general.architecture is missing");
  const GgufArchitecture* architecture = find_gguf_architecture(*name);
  if (architecture == nullptr)
    return error("architecture {} is not supported; supported are {}", printable(*name),
                 gguf_architecture_names());
  return architecture;
}

Result<Config> gguf_config(const GgufArchitecture& architecture, const std::vector<GgufPart>& parts) {
  EIDER_TRY(auto config, ConfigReader(architecture, parts).read());
  return Config(std::move(config), parts.front().file.path());
}

}  // namespace eider
