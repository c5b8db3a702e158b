// WeightStore: an executable's weights in the form that its kernels read: as the checkpoint holds them, or
// packed.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/host/kernels.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/plan.h"
#include "tensor/buffer.h"

namespace eider::host {

class WeightStore {
 public:
  WeightStore(const Kernels& kernels, ThreadPool& pool) : packing_(kernels.packing), pool_(pool) {}

  /// The matrix as the table's products read it. Packs on all threads where the table asks for it: the memory
  /// it takes beyond the model is then this one matrix, since the pages of the checkpoint's file are the
  /// kernel's to drop.
  Result<Matrix> add(const TensorView& weight);

  /// The weights of a plan that are packed and not read as stored (an embedding may be the output matrix
  /// too).
  static std::vector<const TensorView*> copied(const Plan& plan, const Kernels& kernels);
  /// Bytes that the packed form of a plan's weights takes.
  static std::int64_t bytes_beside(const Plan& plan, const Kernels& kernels);

 private:
  const Packing* packing_;
  ThreadPool& pool_;
  std::vector<Buffer> packed_;
};

}  // namespace eider::host
