// What GGUF files call things, one table for each architecture: the published names of their tensors and what
// must be done to the values of either source. To add an architecture, add its table (docs/ADD_A_MODEL.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace eider {

/// What a tensor of the file becomes.
enum class GgufRole : std::uint8_t {
  kPlain,          ///< itself
  kQueryRows,      ///< itself, its rows un-permuted where the architecture's files permute them
  kKeyRows,        ///< the same with the number of key-value heads
  kFusedQkv,       ///< q_proj, k_proj and v_proj rows, one after the other
  kExperts,        ///< one matrix for each expert
  kGateUpExperts,  ///< two for each expert: gate rows, then up rows
  kIgnored,        ///< nothing: derived data that engines compute themselves
};

/// One kind of tensor. Names of layers are without "blk.N." and "model.layers.N.".
struct GgufName {
  std::string_view gguf;
  std::string_view published;  ///< kFusedQkv: "weight" or "bias"; kExperts: the projection
  GgufRole role = GgufRole::kPlain;
};

struct GgufArchitecture {
  std::string_view name;                  ///< general.architecture
  std::string_view model_type;            ///< of published configurations
  bool permuted_rows;                     ///< GGUF: q and k rows stand in interleaved rotary order
  bool norms_lack_one;                    ///< published: norms multiply by 1 + w; GGUF has the sum
  std::span<const GgufName> whole_model;  ///< what it has besides embeddings, last norm and head
  std::span<const GgufName> layer_norms;
  std::span<const GgufName> feed_forward;
};

/// Nothing for an architecture that eider does not know.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
/// The one of a published model_type; nothing where that needs no table of its own.
const GgufArchitecture* find_published_architecture(std::string_view model_type);
/// "llama, qwen2, ..." for messages.
std::string gguf_architecture_names();

/// Where a tensor goes.
struct GgufTarget {
  std::string prefix;  ///< "model.layers.3." or empty
  GgufName name;
};

/// Looks a tensor of a file up; a name that the architecture does not have is an error, as is a layer beyond
/// `num_hidden_layers`.
Result<GgufTarget> find_gguf_target(const GgufArchitecture& architecture, std::string_view gguf_name,
                                    std::int64_t num_hidden_layers);

}  // namespace eider
