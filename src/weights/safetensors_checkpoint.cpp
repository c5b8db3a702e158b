// Checkpoint from safetensors files beside a config.json: one file or the shards of an index.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "format/storage_format.h"
#include "weights/checkpoint_builder.h"
#include "weights/config_style.h"
#include "weights/fp8_scales.h"
#include "weights/gguf_names.h"
#include "weights/hf_vocabulary.h"
#include "weights/json.h"
#include "weights/printable.h"
#include "weights/safetensors.h"
#include "weights/safetensors_index.h"

namespace eider {
namespace {

namespace fs = std::filesystem;

std::optional<Format> dtype_format(std::string_view dtype) {
  if (dtype == "F32") return Format::kF32;
  if (dtype == "F16") return Format::kF16;
  if (dtype == "BF16") return Format::kBF16;
  if (dtype == "F8_E4M3") return Format::kFP8_E4M3;
  return std::nullopt;
}

/// The published name of the text model's tensor, or nothing for what a text model does not use.
std::optional<std::string> text_model_name(std::string_view name) {
  for (const std::string_view part : {"vision_tower.", "multi_modal_projector."}) {
    if (name.starts_with(part) || name.starts_with("model." + std::string(part))) return std::nullopt;
  }
  if (name.ends_with(".rotary_emb.inv_freq")) return std::nullopt;  // a buffer that old files carry
  constexpr std::string_view kOlder = "language_model.";
  constexpr std::string_view kNewer = "model.language_model.";
  if (name.starts_with(kOlder)) return std::string(name.substr(kOlder.size()));
  if (name.starts_with(kNewer)) return "model." + std::string(name.substr(kNewer.size()));
  return std::string(name);
}

class SafetensorsTensors {
 public:
  /// `files` are all of the checkpoint's: a weight's scales may lie in another one.
  static Result<SafetensorsTensors> create(CheckpointBuilder& builder,
                                           const std::vector<SafetensorsFile>& files) {
    const auto find = [&files](std::string_view name) {
      const SafetensorsFile::Entry* found = nullptr;
      for (auto file = files.begin(); found == nullptr && file != files.end(); ++file)
        found = file->find(name);
      return found;
    };
    EIDER_TRY(Fp8Scales scales, Fp8Scales::create(builder.config(), find));
    SafetensorsTensors tensors(builder, std::move(scales));
    EIDER_TRY(const auto model_type, builder.config().string("model_type"));
    const GgufArchitecture* architecture = find_published_architecture(model_type);
    tensors.norms_lack_one_ = architecture != nullptr && architecture->norms_lack_one;
    EIDER_TRY(tensors.tied_, builder.config().boolean_or("tie_word_embeddings", false));
    return tensors;
  }

  Status add(std::string_view name, const SafetensorsFile::Entry& entry) {
    std::optional<std::string> published = text_model_name(name);
    if (!published || (tied_ && *published == "lm_head.weight")) return {};  // a copy of the embeddings
    const std::optional<Format> format = dtype_format(entry.dtype);
    if (!format) {
      builder_.add_data({*std::move(published), entry.dtype, entry.shape, entry.bytes, {}});
      return {};
    }
    TensorView tensor{*std::move(published), *format, entry.shape, entry.bytes.data()};
    if (tensor.format == Format::kFP8_E4M3) {
      Result<OwnedScales> scales = scales_.read(std::string(name), entry.shape);
      if (!scales.ok()) {
        builder_.add_data({std::move(tensor.name), entry.dtype, entry.shape, entry.bytes,
                           fmt::format("is FP8, but {}", scales.error().message())});
        return {};
      }
      tensor.scales = scales->scales;
      builder_.keep(std::make_shared<const Buffer>(std::move(scales->values)));
    }
    builder_.will_read(tensor);
    if (!is_aligned(tensor)) {
      EIDER_TRY(auto copy, aligned_copy(tensor));
      tensor = builder_.own(std::move(copy));
    }
    if (norms_lack_one_ && tensor.name.ends_with("norm.weight")) {
      EIDER_TRY(auto factor, one_plus(tensor));
      tensor = builder_.own(std::move(factor));
    }
    return add_matrices(std::move(tensor));
  }

 private:
  SafetensorsTensors(CheckpointBuilder& builder, Fp8Scales scales)
      : builder_(builder), scales_(std::move(scales)) {}

  static bool is_aligned(const TensorView& tensor) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
    return address % static_cast<std::uintptr_t>(format_block_bytes(tensor.format)) == 0;
  }

  /// Newer exports hold the experts of a layer in two fused tensors.
  Status add_matrices(TensorView tensor) {
    constexpr std::string_view kGateUp = ".gate_up_proj";
    constexpr std::string_view kDown = ".down_proj";
    std::string_view experts = tensor.name;
    if (experts.ends_with(".mlp.experts.gate_up_proj")) {
      experts.remove_suffix(kGateUp.size());
      return builder_.add_gate_up_experts(tensor, experts);
    }
    if (experts.ends_with(".mlp.experts.down_proj")) {
      experts.remove_suffix(kDown.size());
      return builder_.add_experts(tensor, experts, "down_proj");
    }
    return builder_.add(std::move(tensor));
  }

  CheckpointBuilder& builder_;
  Fp8Scales scales_;
  bool norms_lack_one_ = false;  // the model multiplies by 1 + w
  bool tied_ = false;            // the embeddings are the head
};

/// A file's tensors in the order of their bytes.
std::vector<std::pair<std::string_view, const SafetensorsFile::Entry*>> in_file_order(
    const SafetensorsFile& file) {
  std::vector<std::pair<std::string_view, const SafetensorsFile::Entry*>> entries;
  for (const auto& [name, entry] : file.entries()) entries.emplace_back(name, &entry);
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.second->bytes.data(); });
  return entries;
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_safetensors_checkpoint(const std::string& path,
                                                                      const std::string& config_path,
                                                                      const std::string& weights_path) {
  constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
  EIDER_TRY(auto published, read_json_file(config_path, kMostConfigBytes));
  EIDER_TRY(auto config, normalise_config(std::move(published), config_path));

  SafetensorsIndex index{.files = {weights_path}};
  if (weights_path.ends_with(".json")) {
    EIDER_TRY(index, read_safetensors_index(weights_path));
  }
  const std::size_t count = index.files.size();
  CheckpointBuilder builder(path, fmt::format("safetensors, {} {}", count, count == 1 ? "file" : "shards"),
                            std::move(config));
  const fs::path directory = fs::path(config_path).parent_path();
  EIDER_TRY(GenerationConfig generation, read_generation_config(directory.string()));
  builder.set_generation_config(std::move(generation));
  EIDER_TRY(PoolingConfig pooling, read_pooling(directory.string()));
  builder.set_pooling(std::move(pooling));
  const fs::path tokenizer_path = directory / "tokenizer.json";
  std::error_code ignored;
  if (fs::exists(tokenizer_path, ignored)) {
    EIDER_TRY(auto vocabulary, read_hf_vocabulary(tokenizer_path.string(), AddSpecialRule::kTokenizerConfig));
    builder.set_vocabulary(std::move(vocabulary));
  }
  std::vector<SafetensorsFile> files;
  for (const std::string& name : index.files) {
    EIDER_TRY(auto file, SafetensorsFile::open(name));
    EIDER_TRY_STATUS(check_index(index, name, file));
    files.push_back(std::move(file));
  }
  EIDER_TRY(auto tensors, SafetensorsTensors::create(builder, files));
  for (std::size_t i = 0; i < count; ++i)
    for (const auto& [tensor, entry] : in_file_order(files[i]))
      EIDER_TRY_STATUS(tensors.add(tensor, *entry).context(index.files[i]));
  for (SafetensorsFile& file : files) builder.keep(std::move(file).release());
  return std::move(builder).finish();
}

}  // namespace eider
