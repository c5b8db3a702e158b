#include "backend/host/weight_store.h"

#include <algorithm>
#include <utility>

#include "backend/host/phase.h"
#include "base/check.h"
#include "format/storage_format.h"

namespace eider::host {

Result<WeightStore> WeightStore::create(const Plan& plan, const Kernels& kernels, ThreadPool& pool) {
  auto packed = Buffer::allocate(static_cast<std::size_t>(bytes_beside(plan, kernels)));
  if (!packed.ok()) return std::move(packed).error();
  return WeightStore(kernels.packing, pool, std::move(*packed));
}

Matrix WeightStore::add(const TensorView& weight) {
  EIDER_CHECK_EQ(weight.columns() % format_block_elems(weight.format), 0);
  if (packing_ == nullptr) return Matrix{weight.data, weight.row_bytes(), weight.rows(), weight.columns()};
  const std::int64_t tile_bytes = packing_->tile_bytes(weight.format, weight.columns());
  const std::int64_t tiles = row_tiles(weight.rows());
  std::byte* packed = packed_.data() + used_;
  used_ += tiles * tile_bytes;
  EIDER_CHECK(used_ <= static_cast<std::int64_t>(packed_.size()));
  pool_->run([&](int thread) {
    const auto [begin, end] = ThreadPool::share(tiles, 1, thread, pool_->size());
    for (std::int64_t tile = begin; tile < end; ++tile)
      packing_->pack_tile(weight.format, weight.data, weight.row_bytes(), weight.rows(), weight.columns(),
                          tile, packed + tile * tile_bytes);
  });
  return Matrix{packed, tile_bytes, weight.rows(), weight.columns()};
}

namespace {

/// Calls visit(weight) for each weight that a plan multiplies with.
template <class Visit>
void visit_factors(const Plan& plan, Visit visit) {
  for (const Op& op : plan.ops) {
    if (const auto* linear = std::get_if<LinearOp>(&op.body))
      for (const auto& projection : linear->projections) visit(projection.weight);
    if (std::holds_alternative<MoeFfnOp>(op.body))
      for (const TensorView* weight : weights_of(op)) visit(*weight);
  }
}

}  // namespace

std::vector<const TensorView*> WeightStore::copied(const Plan& plan, const Kernels& kernels) {
  std::vector<const TensorView*> copied;
  if (kernels.packing == nullptr) return copied;
  const auto is_embedding = [&](const TensorView& weight) {
    return std::ranges::any_of(plan.ops, [&](const Op& op) {
      const auto* embed = std::get_if<EmbedOp>(&op.body);
      return embed != nullptr && embed->table.data == weight.data;
    });
  };
  visit_factors(plan, [&](const TensorView& weight) {
    if (!is_embedding(weight)) copied.push_back(&weight);
  });
  return copied;
}

std::int64_t WeightStore::bytes_beside(const Plan& plan, const Kernels& kernels) {
  if (kernels.packing == nullptr) return 0;
  std::int64_t bytes = 0;
  visit_factors(plan, [&](const TensorView& weight) {
    bytes += row_tiles(weight.rows()) * kernels.packing->tile_bytes(weight.format, weight.columns());
  });
  return bytes;
}

}  // namespace eider::host
