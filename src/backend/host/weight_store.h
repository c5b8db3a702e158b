// WeightStore: an executable's weights in the form that its kernels read: as the checkpoint holds them, or
// packed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/host/kernels.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/plan.h"
#include "tensor/buffer.h"

namespace eider::host {

class WeightStore {
 public:
  /// A store for the weights of `plan`. Packed ones lie one behind the other in the order in which they are
  /// added, which is that of a step, in pages of 2 MiB where the kernel has them.
  static Result<WeightStore> create(const Plan& plan, const Kernels& kernels, ThreadPool& pool);

  /// The matrix as the table's products read it. Packs where the table asks for it, each tile by the thread
  /// that will read it, so that on a machine of several memories it lies near that one. The memory it takes
  /// beyond the model is this one matrix, since the pages of the checkpoint's file are the kernel's to drop.
  Matrix add(const TensorView& weight);

  /// The weights of a plan that are packed and not read as stored (an embedding may be the output matrix
  /// too).
  static std::vector<const TensorView*> copied(const Plan& plan, const Kernels& kernels);
  /// Bytes that the packed form of a plan's weights takes.
  static std::int64_t bytes_beside(const Plan& plan, const Kernels& kernels);

 private:
  WeightStore(const Packing* packing, ThreadPool& pool, Buffer packed)
      : packing_(packing), pool_(&pool), packed_(std::move(packed)) {}

  const Packing* packing_;
  ThreadPool* pool_;
  Buffer packed_;
  std::int64_t used_ = 0;  // bytes of packed_
};

}  // namespace eider::host
