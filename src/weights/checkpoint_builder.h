// CheckpointBuilder: collects what a reader has normalised and makes the Checkpoint. One reader for each kind
// of source (gguf_checkpoint.cpp, safetensors_checkpoint.cpp) fills it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/checkpoint.h"
#include "weights/transforms.h"

namespace eider {

/// No model has more. Each becomes tensors of its own, which a file's claim must not make endless.
inline constexpr std::int64_t kMostExperts = 65536;

class CheckpointBuilder {
 public:
  CheckpointBuilder(std::string path, std::string source, Config config,
                    RowCopies row_copies = RowCopies::kAtOnce);

  const Config& config() const { return checkpoint_->config_; }
  void set_vocabulary(Vocabulary vocabulary) { checkpoint_->vocabulary_ = std::move(vocabulary); }
  void set_generation_config(GenerationConfig config) { checkpoint_->generation_config_ = std::move(config); }
  void set_pooling(PoolingConfig pooling) { checkpoint_->pooling_ = std::move(pooling); }

  /// Keeps a mapping alive as long as the checkpoint.
  void keep(MappedFile file);
  /// Does so for memory.
  void keep(std::shared_ptr<const void> memory) { checkpoint_->storage_.push_back(std::move(memory)); }
  /// Says that the bytes of a mapped file's tensor will be read: preload() walks them, in the order of these
  /// calls, and release() may drop them.
  void will_read(const TensorView& source);

  /// Keeps a transformed copy's bytes alive as long as the checkpoint.
  TensorView own(OwnedTensor tensor);

  /// The same for a tensor whose bytes `fill` is to write, now or when they are asked for.
  TensorView own(OwnedTensor tensor, std::function<void(std::byte*)> fill);

  /// A tensor under its published name, which must be new.
  Status add(TensorView tensor);
  /// [experts, rows, columns] as `prefix`.<expert>.`projection`.weight; the count must be the config's
  /// num_experts.
  Status add_experts(const TensorView& fused, std::string_view prefix, std::string_view projection);
  /// [experts, 2 * rows, columns], the gate's rows before up's, as the gate_proj and up_proj of each expert.
  Status add_gate_up_experts(const TensorView& fused, std::string_view prefix);
  /// A tensor that is there but cannot be a weight: asking for it as one says why.
  void add_data(DataTensor tensor);

  std::shared_ptr<const Checkpoint> finish() && { return std::move(checkpoint_); }

 private:
  Status check_experts(const TensorView& fused) const;

  std::shared_ptr<Checkpoint> checkpoint_;
  RowCopies row_copies_;
};

/// The readers behind Checkpoint::open.
Result<std::shared_ptr<const Checkpoint>> open_gguf_checkpoint(const std::string& path, RowCopies row_copies);
/// `path`: what the user gave, for messages. `weights_path`: a .safetensors file or a
/// .safetensors.index.json.
Result<std::shared_ptr<const Checkpoint>> open_safetensors_checkpoint(const std::string& path,
                                                                      const std::string& config_path,
                                                                      const std::string& weights_path);

}  // namespace eider
