// Kernels: the arithmetic of a backend that runs on this machine's threads, as a table of functions.
// reference/ and cpu/ have such tables, one for each instruction set; all of them give the same bits. The
// files that are compiled for an instruction set include this header, so it must not use templates of the
// standard library (inline.h says why).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/inline.h"
#include "format/block_scales.h"
#include "format/format.h"
#include "ops/kv_layout.h"
#include "ops/step_state.h"

namespace eider::host {

/// Rows of a weight that a product works on at a time: its vector lanes run along them.
inline constexpr std::int64_t kRowTile = 32;
/// Tokens that share one decoding of a weight's unit.
inline constexpr std::int64_t kTokenTile = 32;
/// Most tokens that share one conversion of a KV block to float.
inline constexpr std::int64_t kQueryTile = 16;

/// The part of a kernel's items that one thread does.
struct Items {
  std::int64_t begin, end;
};

/// What kernels add to codes to have none below 0, at most; `corrections` undo it.
inline constexpr int kQuantizedOffset32 = 128;
inline constexpr int kQuantizedOffset256 = 32;         // with sums of 8 columns, which stay within 16 bits
inline constexpr int kQuantizedSignedOffset256 = 128;  // with sums of 16 and 32 columns

/// Corrections of a row's unit of 256 columns: of 32 times 8 columns, 16 times 16, 8 times 32.
inline constexpr std::int64_t kCorrectionsOf16 = 32, kCorrectionsOf32 = 48, kCorrections256 = 56;
/// Its sums: of 16 times 16 columns, 8 times 32.
inline constexpr std::int64_t kSumsOf32 = 16, kSums256 = 24;

/// Activations for the integer rules, by unit of 32 or 256 columns: x = scale * code. Sums of codes stand
/// beside them in the forms that products read.
struct QuantizedRows {
  std::int8_t* codes;  // [units][rows][columns of a unit], each in -127..127
  float* scales;       // [units][rows]
  /// -offset * sum of codes. 32 columns: [units][rows][2], of all of them and of the second half; 256:
  /// [units][rows][kCorrections256], those of 8 columns with kQuantizedOffset256, their upper 16 bits 0, the
  /// others with kQuantizedSignedOffset256.
  std::int32_t* corrections;
  std::int16_t* sums;  // 256 columns only: [units][rows][kSums256]
  float* unit_sums;    // 32 columns only: [units][rows], of all of a unit's codes
  std::int64_t rows;
};

/// out[row] = in[input_rows[row]] quantised. Items: rows * units; all units of a block of rows, each unit's
/// rows one after the other, and then the next block: so rows are read in order and whole cache lines
/// written.
struct QuantizeArgs {
  const float* in;                 // [..., columns]
  const std::int32_t* input_rows;  // null: 0, 1, 2, ...
  std::int64_t columns;
  QuantizedRows out;
};
inline constexpr std::int64_t kQuantizedBlock = 16;

/// out[row] = in[input_rows[row]] times the power of two that the table's products of scaled floats want,
/// less than 2^-97 as 0, 2^28 and more as NaN. Items: rows.
struct ScaleInputArgs {
  const float* in;                 // [..., columns]
  const std::int32_t* input_rows;  // null: 0, 1, 2, ...
  std::int64_t columns;
  float* out;
};

/// A weight as the table's products read it: rows as stored, or packed tiles of kRowTile rows
/// (Kernels::pack).
struct Matrix {
  const std::byte* data;
  std::int64_t row_bytes;  // of a row, or of a packed tile
  std::int64_t rows, columns;
  BlockScales scales = {};  // a packed tile has them in it
};

/// What products multiply with: float formats read the values (FP8: of ScaleInputArgs), integer formats the
/// quantised rows of their rule.
struct ProductInput {
  const float* values;  // [rows, columns]
  QuantizedRows quantized;
};

/// out[i] = in[first + i] * weight^T (+ bias), i < count. Items: tiles of kRowTile rows of the weight.
struct ProductArgs {
  ProductInput in;
  std::int64_t first, count;
  Matrix weight;
  const float* bias;  // [weight.rows], or null
  std::byte* opened;  // Packing::opened_bytes() of the thread's own
  float* out;         // [count, weight.rows]
};

/// Items: vectors of `width` elements.
struct RmsNormArgs {
  const float* in;
  const float* weight;  // [width]
  float eps;
  std::int64_t width;
  float* out;
};

/// Items: tokens * heads.
struct RopeArgs {
  const float* in;     // [tokens, heads, head_dim]
  const float* table;  // [tokens, 2 * pairs]
  std::int64_t heads, head_dim, pairs;
  float* out;
};

/// Where the rows of a step stand, and one layer's place in their blocks.
struct KvRows {
  const std::int32_t* positions;  // [tokens]
  const std::int32_t* sequence;   // [tokens]
  const SequenceBlocks* sequences;
  std::int64_t tokens;
  KvSlot slot;
  KvBlockLayout layout;
};

/// Items: KV heads * tokens.
struct StoreKvArgs {
  KvRows rows;
  const float* keys;    // [tokens, KV heads, head_dim]
  const float* values;  // [tokens, KV heads, head_dim]
};

/// The blocks in which a query at `position` sees a key.
EIDER_ALWAYS_INLINE Items visible_blocks(std::int64_t position, std::int64_t window) {
  const std::int64_t first = window == 0 || position < window ? 0 : position - window + 1;
  return {first / kKvBlockPositions, position / kKvBlockPositions + 1};
}

/// The end of the run of one sequence's tokens that begins at `begin`, at most `end`.
EIDER_ALWAYS_INLINE std::int64_t run_end(const std::int32_t* sequence, std::int64_t begin, std::int64_t end) {
  std::int64_t at = begin + 1;
  while (at < end && sequence[at] == sequence[begin]) ++at;
  return at;
}
/// The blocks that any token of a run [begin, end) sees.
EIDER_ALWAYS_INLINE Items run_visible_blocks(const std::int32_t* positions, std::int64_t begin,
                                             std::int64_t end, std::int64_t window) {
  return {visible_blocks(positions[begin], window).begin, visible_blocks(positions[end - 1], window).end};
}

/// Attention: items are KV heads * tiles of tile_tokens tokens. Where those do not share out well over the
/// threads, the same in two steps: each block by itself, items being the KV heads of the visible blocks of
/// each run of at most kQueryTile tokens in turn; then the merge, items being tokens * heads.
struct AttentionArgs {
  KvRows rows;
  std::int64_t tile_tokens;  // at most kQueryTile
  const float* query;        // [tokens, heads, head_dim]
  std::int64_t heads;
  std::int64_t window;  // 0: all positions
  float scale, softcap;
  float* scratch;  // attention_scratch() floats of the thread's own
  float* blocks;   // of the two steps: [blocks of each token][heads][block_row_floats()]
  float* out;      // [tokens, heads, head_dim]
};

/// Floats that a row of head_dim takes in scratch: whole vectors, and an odd number of cache lines, so that a
/// column of rows lies in all sets of the cache.
inline constexpr std::int64_t attention_row_floats(std::int64_t head_dim) {
  return ((head_dim + 15) / 16 | 1) * 16;
}

/// Floats of a block's result for one row: the sum of values [head_dim], the maximum, the denominator.
inline constexpr std::int64_t block_row_floats(std::int64_t head_dim) {
  return (head_dim + 2 + 15) / 16 * 16;
}

/// What the tables' kernels need at most: keys and values of a block; and of each row its scores, its sum and
/// some numbers.
inline constexpr std::int64_t attention_scratch(std::int64_t head_dim, std::int64_t group) {
  const std::int64_t row_floats = attention_row_floats(head_dim);
  return (kKvBlockPositions + 16) * head_dim + kKvBlockPositions * row_floats +
         kQueryTile * group * (kKvBlockPositions + row_floats + 16) + 16 * 16;
}

/// Items: elements. `b` is the second operand (add: b, gated activations: up).
struct ElementwiseArgs {
  const float* a;
  const float* b;
  float* out;
};

/// Items: elements.
struct SoftCapArgs {
  const float* in;
  float cap;
  float* out;
};

/// Items: tokens.
struct MoeRouteArgs {
  const float* scores;  // [tokens, experts]
  std::int64_t experts, top_k;
  bool normalize;
  std::int32_t* picks;  // [tokens, top_k], ascending
  float* weights;       // [tokens, top_k]
};

/// The step's picks, sorted by expert: the i-th of the picked experts has places begin[i] .. begin[i + 1] -
/// 1, in ascending token. The rows that experts make stand in this order.
struct ExpertPicks {
  std::int64_t count;          // of picked experts
  const std::int32_t* chosen;  // [count]: those, ascending
  const std::int32_t* begin;   // [count + 1]
  const std::int32_t* tokens;  // [tokens * top_k]: the token of each place
  const float* weights;        // [tokens * top_k]: how much the expert counts there
};

/// out[token] = sum over the token's picks of weight * down(h[place]). Items: tiles of kRowTile rows of the
/// weights.
struct MoeDownArgs {
  ProductInput in;  // h: [tokens * top_k, columns]
  ExpertPicks picks;
  const Matrix* down;  // [experts], of one shape and format
  std::int64_t tokens;
  std::int64_t units_per_group;  // 1 or 2
  std::int64_t tile_tokens;      // that share a pass over the experts: moe_down_tokens()
  std::byte* opened;             // Packing::opened_bytes() of the thread's own
  float* scratch;                // [groups][tile_tokens][kRowTile] of the thread's own
  float* out;                    // [tokens, down.rows]
};

/// As many tokens as half a MiB has room for: the sums of a tile stay in the second-level cache.
inline constexpr std::int64_t moe_down_tokens(std::int64_t groups) {
  const std::int64_t tokens = (std::int64_t{1} << 17) / (groups * kRowTile) / kTokenTile * kTokenTile;
  return tokens < kTokenTile ? kTokenTile : tokens;
}

/// A layout of weights that a table's products read instead of the stored one.
struct Packing {
  /// Bytes of a tile of kRowTile rows of a matrix.
  std::int64_t (*tile_bytes)(Format format, std::int64_t columns, const BlockScales& scales);
  /// Bytes of a tile as kernels open it for many tokens.
  std::int64_t (*opened_bytes)(Format format, std::int64_t columns);
  /// Packs tile `tile` of a stored matrix; the last tile is filled up with zeros.
  void (*pack_tile)(Format format, const Matrix& stored, std::int64_t tile, std::byte* packed);
};

/// By Format; the last of the list gives the size.
inline constexpr std::size_t kFormats = static_cast<std::size_t>(Format::kFP8_E4M3) + 1;

struct Kernels {
  template <class Args>
  using Function = void (*)(const Args& args, Items items);

  const char* name;        // of the instruction set
  const Packing* packing;  // of the weights of product and moe_down; null: as stored
  Function<QuantizeArgs> quantize_32;
  Function<QuantizeArgs> quantize_256;
  Function<ScaleInputArgs> scale_input;
  Function<ProductArgs> product[kFormats];
  Function<MoeDownArgs> moe_down[kFormats];
  Function<MoeRouteArgs> moe_route;
  Function<RmsNormArgs> rms_norm;
  Function<RopeArgs> rope;
  Function<StoreKvArgs> store_kv[2];            // by KvType
  Function<AttentionArgs> attention[2];         // by KvType
  Function<AttentionArgs> attention_blocks[2];  // the first of the two steps; may be null
  Function<AttentionArgs> attention_merge;      // the second
  Function<ElementwiseArgs> add;
  Function<ElementwiseArgs> gated_silu;
  Function<ElementwiseArgs> gated_gelu_tanh;
  Function<SoftCapArgs> soft_cap;
};

}  // namespace eider::host
