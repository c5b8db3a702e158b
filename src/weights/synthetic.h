// SyntheticModel: random weights at the shape of a published model, for measuring what a file of that model
// would give without having it. It becomes a Checkpoint, and a GGUF file that other programs read; both hold
// the same weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"
#include "weights/checkpoint.h"
#include "weights/new_file.h"
#include "weights/synthetic_shapes.h"

namespace eider {

struct SyntheticSpec {
  ModelShape shape;
  Format format = Format::kQ8_0;  ///< of all matrices but routers; routers and norms are F32,
                                  ///< beside FP8 the embedding and the head BF16
  std::int64_t layers = 0;        ///< only the first so many; 0: all
  std::uint64_t seed = 1;
};

class SyntheticModel {
 public:
  /// Makes the weights on all threads of `pool`; they depend on `spec` alone. Fails on more layers than the
  /// shape has, columns that the format's blocks do not divide, and want of memory.
  static Result<SyntheticModel> create(const SyntheticSpec& spec, ThreadPool& pool);

  /// "qwen3-30b-a3b 4 layers Q4_K"
  const std::string& name() const { return name_; }
  /// Under the names of GGUF files. They are pieces of a few stretches of random weights, each somewhat
  /// longer than the largest tensor, so a model takes little memory until a backend packs it. Two tensors may
  /// overlap, at places that differ.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  /// Without a vocabulary: it is asked with token ids.
  Result<std::shared_ptr<const Checkpoint>> checkpoint() const;

  /// Writes a GGUF file with a vocabulary of placeholders (as GgufWriter::write()), or of FP8 a directory as
  /// published ones look (as write_model_directory()), without a tokenizer.
  Status write(const std::string& path, const WriteProgress& progress = {}) const;

 private:
  Status write_gguf(const std::string& path, const WriteProgress& progress) const;  // synthetic_gguf.cpp
  Status write_directory(const std::string& path, const WriteProgress& progress) const;

  SyntheticModel(ModelShape shape, Format format, std::string name)
      : shape_(shape), format_(format), name_(std::move(name)) {}

  ModelShape shape_;  // its num_hidden_layers are the ones made
  Format format_;
  std::string name_;
  std::vector<std::shared_ptr<const Buffer>> stretches_;
  std::vector<TensorView> tensors_;
};

}  // namespace eider
