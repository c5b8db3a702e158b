// Which instruction sets a machine gets.
#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

namespace eider {
namespace {

using Names = std::vector<std::string_view>;

#if defined(__x86_64__)
TEST(CpuIsas, AreTheMachinesBestFirst) {
  Machine machine;
  EXPECT_EQ(cpu_isas(machine), (Names{"scalar"}));
  machine.has_fma = true;  // also AVX-512 without VNNI
  EXPECT_EQ(cpu_isas(machine), (Names{"avx2", "scalar"}));
  machine.has_avx_vnni = true;
  EXPECT_EQ(cpu_isas(machine), (Names{"avx2_vnni", "avx2", "scalar"}));
  machine.has_avx512 = true;
  EXPECT_EQ(cpu_isas(machine), (Names{"avx512", "avx2_vnni", "avx2", "scalar"}));
}
#elif defined(__aarch64__)
TEST(CpuIsas, AreTheMachinesBestFirst) {
  Machine machine;
  EXPECT_EQ(cpu_isas(machine), (Names{"neon", "scalar"}));
  machine.has_dot_product = true;
  EXPECT_EQ(cpu_isas(machine), (Names{"neon_dot", "neon", "scalar"}));
}
#endif

TEST(CpuBackend, RefusesAnInstructionSetThatIsNotThere) {
  ThreadPool pool(1);
  const auto backend = make_cpu_backend(pool, Machine{}, "avx1024");
  ASSERT_FALSE(backend.ok());
  EXPECT_NE(backend.error().message().find("'avx1024'"), std::string::npos);
  EXPECT_NE(backend.error().message().find("scalar"), std::string::npos);
}

}  // namespace
}  // namespace eider
