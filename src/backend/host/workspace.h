// Workspace: the memory that one operation needs beside its values, laid out before anything is allocated, so
// that what working_memory() promises is what compile() takes. Operations run one after the other and share
// it.
#pragma once

#include <cstdint>

#include "backend/host/kernels.h"
#include "format/format_traits.h"
#include "ops/backend.h"

namespace eider::host {

/// The integer rule's activations of [rows, columns]: byte offsets of its parts, from wherever it is put.
struct QuantizedLayout {
  std::int64_t codes = 0, scales = 0, corrections = 0, sums = 0, unit_sums = 0;
  std::int64_t bytes = 0;  // 0 for the float rules, which need none
};
QuantizedLayout quantized_layout(ProductRule rule, std::int64_t rows, std::int64_t columns);

/// The rule that says how the input of products with `format` is quantised: kInteger32Halves reads what
/// kInteger32 does.
ProductRule product_rule(Format format);
/// Columns of a unit of `rule`.
std::int64_t unit_columns(ProductRule rule);

/// What one operation needs: offsets in bytes into the shared part, and floats of each thread's own part.
struct OpWorkspace {
  std::int64_t quantized_32 = 0;   // inputs of the products, for weights of the 32-column rule
  std::int64_t quantized_256 = 0;  // and of the 256-column rule
  std::int64_t scaled = 0;         // floats, for weights of the scaled float rule
  // Of a mixture of experts, where picks are tokens * top_k:
  std::int64_t gathered = 0;      // floats [picks, hidden size]: the input's rows for float weights
  std::int64_t gate = 0, up = 0;  // floats [picks, intermediate size]
  std::int64_t gated = 0;         // act(gate) * up, the same shape
  std::int64_t picks = 0;         // ExpertPicks: int32[2 * experts + 2 + picks], float[picks]
  std::int64_t shared_bytes = 0;
  std::int64_t opened_floats = 0;  // of thread_floats, at its begin: Packing::opened_bytes()
  std::int64_t thread_floats = 0;

  /// Where the form of an input that `rule` reads lies (for kFloat: nowhere).
  std::int64_t& input_form(ProductRule rule) {
    if (rule == ProductRule::kScaledFloat) return scaled;
    return rule == ProductRule::kInteger256 ? quantized_256 : quantized_32;
  }
};
OpWorkspace op_workspace(const Plan& plan, const Op& op, const CompileOptions& options,
                         const Kernels& kernels);

/// Groups of units of an expert's down product (docs/NUMERICS.md, Mixture of experts).
std::int64_t moe_down_groups(Format format, std::int64_t moe_intermediate_size);

/// KV blocks that a step has room for whose attention is split over blocks, counted for each token: those of
/// 4 tokens at the end of the context, or of more before.
std::int64_t split_blocks(const KvKind& kind, const CompileOptions& options);

/// Units of an expert's down product that are added before the expert's weight is applied: 1 or 2.
std::int64_t units_per_group(Format format, std::int64_t moe_intermediate_size);

/// Most rows that a value of the plan has.
std::int64_t most_rows(const Value& value, const CompileOptions& options);

/// All that a program allocates.
struct MemoryNeeds {
  ValueStorage values;
  std::int64_t shared_bytes = 0;   // the largest of all operations
  std::int64_t thread_floats = 0;  // the same, for each thread
  std::int64_t vector_floats = 0;  // norm weights and biases as floats

  std::int64_t bytes(int threads) const;
};
MemoryNeeds memory_needs(const Plan& plan, const CompileOptions& options, const Kernels& kernels);

}  // namespace eider::host
