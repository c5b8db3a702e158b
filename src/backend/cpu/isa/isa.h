// What the .cpp files of this folder include. They are compiled once for each instruction set (CMakeLists.txt
// beside this file): EIDER_ISA is its namespace, in which everything lies, EIDER_ISA_NAME the same as a
// string, EIDER_SIMD the file of its vector vocabulary.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backend/cpu/packed.h"
#include "backend/cpu/tables.h"
#include "backend/host/kernels.h"
#include "format/half.h"
#include "format/storage_format.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace eider::cpu::EIDER_ISA {

/// Opens packed units of `columns` columns that lie one after the other (packed.h).
using OpenUnits = void (*)(const std::byte* packed, std::int64_t columns, std::byte* opened);
OpenUnits opener(Format format, Fp8Form form);  // openers.cpp

/// Whether the products of a format are of this instruction set's own. Those that stand over another one,
/// EIDER_BASE_ISA, differ from it in the dot products of integers only.
#if defined(EIDER_BASE_ISA)
template <class F>
inline constexpr bool kOwnProducts = !is_float_rule(F::kProduct);
#else
template <class F>
inline constexpr bool kOwnProducts = true;
#endif

void add_products(host::Kernels& table, Fp8Form form);   // products.cpp
void add_moe_downs(host::Kernels& table, Fp8Form form);  // moe_downs.cpp
void add_attention(host::Kernels& table);                // attention.cpp

}  // namespace eider::cpu::EIDER_ISA
