// Model work: what a step of a plan costs at least, by the plan's own weights.
#pragma once

#include <cstdint>

#include "bench/roof.h"
#include "ops/kv_layout.h"
#include "ops/plan.h"

namespace eider::bench {

/// Bytes that the decoding of one token reads: its weights (of experts, those picked), and the keys and
/// values of the `positions` positions before it and its own, as far as windows let it see them.
double decode_bytes(const Plan& plan, KvType kv_type, double positions);

/// Multiply-adds of weights for a prompt of `tokens` tokens, of which one wants logits, as operations (two
/// each) by the arithmetic that docs/NUMERICS.md gives the weights' format. Attention does not count.
Work prefill_work(const Plan& plan, std::int64_t tokens);

}  // namespace eider::bench
