#include "backend/host/weight_store.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "backend/host/phase.h"
#include "base/check.h"
#include "format/storage_format.h"
#include "tensor/code_check.h"

namespace eider::host {
namespace {

/// Calls visit(weight) for each weight that an operation multiplies with, in the order in which a step reads
/// them.
template <class Visit>
void visit_factors(const Op& op, Visit visit) {
  if (const auto* linear = std::get_if<LinearOp>(&op.body))
    for (const auto& projection : linear->projections) visit(projection.weight);
  if (const auto* moe = std::get_if<MoeFfnOp>(&op.body)) {
    for (const auto& expert : moe->all_experts) {
      visit(expert.gate);
      visit(expert.up);
    }
    for (const auto& expert : moe->all_experts) visit(expert.down);
  }
}

Matrix stored_matrix(const TensorView& weight) {
  return {weight.data, weight.row_bytes(), weight.rows(), weight.columns(), weight.scales};
}

}  // namespace

std::vector<PreparedWeight> packed_weights(const Plan& plan, const Kernels& kernels) {
  std::vector<PreparedWeight> weights;
  if (kernels.packing == nullptr) return weights;
  std::unordered_set<const std::byte*> seen;
  for (const Op& op : plan.ops)
    visit_factors(op, [&](const TensorView& weight) {
      if (seen.insert(weight.data).second)
        weights.push_back({&weight, op.layer,
                           row_tiles(weight.rows()) *
                               kernels.packing->tile_bytes(weight.format, weight.columns(), weight.scales)});
    });
  return weights;
}

std::vector<const TensorView*> copied_weights(const Plan& plan, const Kernels& kernels) {
  std::vector<const TensorView*> copied;
  const auto is_embedding = [&](const TensorView& weight) {
    return std::ranges::any_of(plan.ops, [&](const Op& op) {
      const auto* embed = std::get_if<EmbedOp>(&op.body);
      return embed != nullptr && embed->table.data == weight.data;
    });
  };
  for (const PreparedWeight& packed : packed_weights(plan, kernels))
    if (!is_embedding(*packed.weight)) copied.push_back(packed.weight);
  return copied;
}

std::int64_t packed_bytes(const Plan& plan, const Kernels& kernels) {
  std::int64_t bytes = 0;
  for (const PreparedWeight& packed : packed_weights(plan, kernels)) bytes += packed.bytes;
  return bytes;
}

void pack(const TensorView& weight, const Packing& packing, ThreadPool& pool, std::byte* out) {
  EIDER_CHECK_EQ(weight.columns() % format_block_elems(weight.format), 0);
  const std::int64_t tile_bytes = packing.tile_bytes(weight.format, weight.columns(), weight.scales);
  const std::int64_t tiles = row_tiles(weight.rows());
  pool.run([&](int thread) {
    const auto [begin, end] = ThreadPool::share(tiles, 1, thread, pool.size());
    for (std::int64_t tile = begin; tile < end; ++tile)
      packing.pack_tile(weight.format, stored_matrix(weight), tile, out + tile * tile_bytes);
  });
}

Result<WeightStore> WeightStore::create(const Plan& plan, const Kernels& kernels,
                                        const std::vector<const std::byte*>& prepared, ThreadPool& pool) {
  const std::vector<PreparedWeight> weights = packed_weights(plan, kernels);
  if (!prepared.empty()) EIDER_CHECK_EQ(prepared.size(), weights.size());
  const std::int64_t own_bytes = prepared.empty() ? packed_bytes(plan, kernels) : 0;
  EIDER_TRY(Buffer buffer, Buffer::allocate(static_cast<std::size_t>(own_bytes)));
  WeightStore store(kernels.packing, std::move(buffer));
  std::byte* next = store.packed_.data();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TensorView& weight = *weights[i].weight;
    const std::byte* place = next;
    if (prepared.empty()) {
      EIDER_TRY_STATUS(check_codes(weight));
      pack(weight, *kernels.packing, pool, next);
      next += weights[i].bytes;
    } else {
      place = prepared[i];
    }
    store.places_.emplace(weight.data, place);
  }
  return store;
}

Matrix WeightStore::matrix(const TensorView& weight) const {
  Matrix matrix = stored_matrix(weight);
  if (packing_ == nullptr) return matrix;
  matrix.data = places_.at(weight.data);
  matrix.row_bytes = packing_->tile_bytes(weight.format, weight.columns(), weight.scales);
  return matrix;
}

}  // namespace eider::host
