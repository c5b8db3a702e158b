// WeightStore: an executable's weights in the form that its kernels read: as the checkpoint holds them, or
// packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backend/host/kernels.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/backend.h"
#include "tensor/buffer.h"

namespace eider::host {

/// The weights of a plan that `kernels` read packed, in the order of a step; none where they read them as
/// stored.
std::vector<PreparedWeight> packed_weights(const Plan& plan, const Kernels& kernels);
/// Those of them that no step reads as stored too (an embedding may be the output matrix).
std::vector<const TensorView*> copied_weights(const Plan& plan, const Kernels& kernels);
/// Bytes that packed_weights() take.
std::int64_t packed_bytes(const Plan& plan, const Kernels& kernels);
/// Packs a matrix, each tile by the thread that will read it, so that on a machine of several memories it
/// lies near that one. The memory it takes beyond the model is this one matrix, since the pages of the
/// checkpoint's file are the kernel's to drop.
void pack(const TensorView& weight, const Packing& packing, ThreadPool& pool, std::byte* out);

class WeightStore {
 public:
  /// The weights of `plan`. Packed ones lie where `prepared` says (CompileOptions), or are packed here, one
  /// behind the other in the order of a step, in pages of 2 MiB where the kernel has them.
  static Result<WeightStore> create(const Plan& plan, const Kernels& kernels,
                                    const std::vector<const std::byte*>& prepared, ThreadPool& pool);

  /// A weight of the plan as the table's products read it.
  Matrix matrix(const TensorView& weight) const;

 private:
  WeightStore(const Packing* packing, Buffer packed) : packing_(packing), packed_(std::move(packed)) {}

  const Packing* packing_;
  Buffer packed_;
  std::unordered_map<const std::byte*, const std::byte*> places_;  // of packed weights, by their stored bytes
};

}  // namespace eider::host
