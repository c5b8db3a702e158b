// KV blocks: how the keys and values of 128 positions lie in memory. The pool of runtime/ hands blocks out,
// backends write and read them; this header is the only place that knows the layout.
#pragma once

#include <cstdint>
#include <string>

#include "base/inline.h"

namespace eider {

/// Positions of one block: the attention block of docs/NUMERICS.md.
inline constexpr std::int64_t kKvBlockPositions = 128;

enum class KvType : std::uint8_t { kF16, kF32 };
inline constexpr std::int64_t kv_type_bytes(KvType type) {
  return type == KvType::kF16 ? 2 : 4;
}

/// Layers that share blocks: all of the same head shape and the same visibility.
struct KvKind {
  std::string name;         ///< "full" or "sliding"
  std::int64_t layers = 0;  ///< layers of this kind
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;  ///< of keys and of values
  std::int64_t window = 0;    ///< a query at p sees positions above p - window; 0: all
};

/// A layer's place: blocks of `kind`, layer `index` among that kind's layers.
struct KvSlot {
  int kind = 0;
  std::int64_t index = 0;
};

/// One block of one kind, in elements of the KV type:
///
///   [layer of the kind][KV head] { keys [head_dim][128] , values [128][head_dim] }
///
/// Keys lie with positions fastest, so that scores are computed with lanes along keys; values lie with
/// dimensions fastest, so that the weighted sum runs with lanes along dimensions.
struct KvBlockLayout {
  std::int64_t num_key_value_heads;
  std::int64_t head_dim;

  EIDER_ALWAYS_INLINE std::int64_t head_elements() const { return 2 * head_dim * kKvBlockPositions; }
  /// Element offset of key 0, dimension 0; key i, dimension d is d * 128 + i further on.
  EIDER_ALWAYS_INLINE std::int64_t keys(std::int64_t layer, std::int64_t head) const {
    return (layer * num_key_value_heads + head) * head_elements();
  }
  /// Element offset of value 0, dimension 0; value i, dimension d is i * head_dim + d further on.
  EIDER_ALWAYS_INLINE std::int64_t values(std::int64_t layer, std::int64_t head) const {
    return keys(layer, head) + head_dim * kKvBlockPositions;
  }
};

inline KvBlockLayout block_layout(const KvKind& kind) {
  return {kind.num_key_value_heads, kind.head_dim};
}

/// Bytes of one block of `kind`.
inline std::int64_t kv_block_bytes(const KvKind& kind, KvType type) {
  return kind.layers * kind.num_key_value_heads * block_layout(kind).head_elements() * kv_type_bytes(type);
}

}  // namespace eider
