// How a model's makers fold the states of a text's tokens into its embedding: sentence-transformers'
// modules.json and 1_Pooling/config.json beside a Hugging Face checkpoint, {architecture}.pooling_type of a
// GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "weights/gguf.h"

namespace eider {

/// What becomes of the states (the final norm's outputs) of n tokens.
enum class Pooling : std::uint8_t {
  kLast,         ///< the last token's
  kMean,         ///< their mean
  kCls,          ///< the first token's
  kMax,          ///< the largest value of each dimension
  kMeanSqrtLen,  ///< their sum / sqrt(n)
  kWeightedMean  ///< their mean, token i of 1..n weighted by i
};

/// As eider calls it: "last", "mean", "cls", "max", "mean_sqrt_len" or "weighted_mean".
std::string_view pooling_name(Pooling pooling);

struct PoolingConfig {
  Pooling pooling = Pooling::kLast;
  /// Why the model gives no embeddings, in one line: its files ask for what is not computed here. Empty: it
  /// gives them.
  std::string refusal;
};

/// What the files in `directory` name; the last token's state where they name nothing. Files that are damaged
/// are errors.
Result<PoolingConfig> read_pooling(const std::string& directory);

/// What the metadata of a GGUF file names, the same way. `architecture`: the prefix of its keys.
Result<PoolingConfig> gguf_pooling(const GgufFile& file, std::string_view architecture);

}  // namespace eider
