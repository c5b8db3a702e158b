// Down products of mixtures of experts, of every format, for AVX2.
#include "backend/cpu/isa/avx2.h"

#if defined(__AVX2__)
namespace eider::cpu::avx2 {
using namespace host;  // NOLINT(google-build-using-namespace)
namespace {
#include "backend/cpu/isa/simd_avx2.inl.h"

#include "backend/cpu/kernels/product.inl.h"

#include "ops/numerics.inl.h"

#include "backend/reference/vector.inl.h"

#include "backend/reference/route.inl.h"

#include "backend/cpu/kernels/moe_down.inl.h"
}  // namespace

#include "backend/cpu/kernels/add_moe_downs.inl.h"

}  // namespace eider::cpu::avx2
#endif
