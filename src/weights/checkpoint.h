// Checkpoint: one view over a GGUF file (or its split parts) and a Hugging Face directory. Everything that
// differs between sources is undone here and nowhere else: tensors carry Hugging Face names and PyTorch
// shapes, q and k rows stand in half-split order, norm weights are the factor itself (gemma's 1 + w), fused
// qkv and gate|up and 3-D expert tensors appear as the separate matrices that models ask for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/tensor_view.h"
#include "text/vocabulary.h"
#include "weights/config.h"
#include "weights/data_tensor.h"
#include "weights/generation_config.h"
#include "weights/pooling.h"

namespace eider {

/// When matrices whose rows a source holds in another order are copied into theirs. Other transforms are of
/// small tensors and done at once.
enum class RowCopies : std::uint8_t {
  kAtOnce,
  kWhenAsked  ///< by make_ready() or preload(); until then the bytes of such a tensor are zeros
};

class Checkpoint {
 public:
  /// `path`: a .gguf file (the first part of a split one), a directory holding config.json, a .safetensors
  /// file or index beside its config.json, or another configuration beside its .safetensors files by its own
  /// .json name. Nothing is read but headers and what a transform must copy.
  static Result<std::shared_ptr<const Checkpoint>> open(const std::string& path,
                                                        RowCopies row_copies = RowCopies::kAtOnce);

  /// What the file is, for people: "GGUF v3, 1 part" or "safetensors, 2 shards".
  const std::string& source() const { return source_; }
  const std::string& path() const { return path_; }
  /// Keys as in published config.json files: model_type, hidden_size, num_hidden_layers, rope_theta,
  /// rope_scaling, ...
  const Config& config() const { return config_; }
  /// The tokenizer's data; absent where the source has none (a directory without tokenizer.json).
  const std::optional<Vocabulary>& vocabulary() const { return vocabulary_; }

  /// What a directory advises for sampling; empty for other sources.
  const GenerationConfig& generation_config() const { return generation_config_; }
  /// How texts become embeddings.
  const PoolingConfig& pooling() const { return pooling_; }

  /// Names as in published checkpoints, "model.layers.0.self_attn.q_proj.weight", experts as
  /// "model.layers.0.mlp.experts.3.gate_proj.weight"; llama3 divisors of GGUF files as "rope_freqs.weight".
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  /// Tensors that are no weights: of types that products do not read. Under published names, or those of a
  /// GGUF file.
  const std::map<std::string, DataTensor, std::less<>>& data_tensors() const { return data_tensors_; }

  /// The tensor, or one line: missing, of another shape, or (matrices) of columns that are no multiple of its
  /// block.
  Result<TensorView> get(std::string_view name, const Shape& shape) const;
  /// As get(), but a tensor that is absent is not an error.
  Result<std::optional<TensorView>> get_optional(std::string_view name, const Shape& shape) const;

  /// Bytes of all tensors as stored (shared and sliced ones counted once): what memory must hold.
  std::int64_t weight_bytes() const { return weight_bytes_; }

  /// Makes the copy behind `view`, one of tensors(), where that is still to be done. Not thread-safe.
  void make_ready(const TensorView& view) const;

  /// Touches every mapped page once, in file order, so that the first token does not pay for the disk; calls
  /// progress(bytes done, bytes in all) now and then and stops early when it returns false. Then makes the
  /// copies that are still to be made.
  void preload(const std::function<bool(std::int64_t, std::int64_t)>& progress) const;

  /// The files that hold the tensors; none where they were made in memory.
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

  /// Bytes of `view`, one of tensors(), that are pages of a mapped file: 0 where it was transformed.
  std::int64_t mapped_bytes(const TensorView& view) const;
  /// Gives the memory of such pages back; the view stays readable.
  void release(const TensorView& view) const;

 private:
  friend class CheckpointBuilder;
  explicit Checkpoint(Config config) : config_(std::move(config)) {}
  void touch_pages(const std::function<bool(std::int64_t, std::int64_t)>& progress) const;

  std::string path_;
  std::string source_;
  Config config_;
  std::optional<Vocabulary> vocabulary_;
  GenerationConfig generation_config_;
  PoolingConfig pooling_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, DataTensor, std::less<>> data_tensors_;
  std::int64_t weight_bytes_ = 0;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::shared_ptr<const void>> storage_;  // transformed copies and tensors made in memory
  std::vector<std::span<const std::byte>> mapped_;    // what preload() walks
  mutable std::map<const std::byte*, std::function<void()>> copies_to_make_;  // by their place
};

}  // namespace eider
