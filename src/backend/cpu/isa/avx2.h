// What the files of this instruction set include before they open its namespace, and how their parts come
// together.
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
#endif

namespace eider::cpu::avx2 {

void add_products(host::Kernels& table);   // avx2_products.cpp
void add_moe_downs(host::Kernels& table);  // avx2_moe.cpp

}  // namespace eider::cpu::avx2
