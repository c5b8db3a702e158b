// Instructions that a product takes for each weight when one token is decoded, counted by stepping through
// it: the same on every machine that runs an instruction set, however busy, so a kernel that became dearer
// shows here at once. The counts stand in docs/PERFORMANCE.md.
#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "backend/cpu/cpu_backend.h"
#include "backend/host/kernels.h"
#include "base/machine.h"
#include "format/all_formats.h"

namespace eider {
namespace {

constexpr std::int64_t kWeightColumns = 512;

/// A product of `tiles` tiles of zeros with one token.
class TileProduct {
 public:
  TileProduct(const host::Kernels& kernels, Format format, std::int64_t tiles)
      : product_(kernels.product[static_cast<std::size_t>(format)]),
        tile_bytes_(kernels.packing->tile_bytes(format, kWeightColumns, {})),
        tiles_(tiles) {}

  void run() {
    host::ProductArgs args{};
    args.in = {values_.data(),
               {codes_.data(), values_.data(), corrections_.data(), sums_.data(), values_.data(), 1}};
    args.count = 1;
    args.weight = {weights_.data(), tile_bytes_, tiles_ * host::kRowTile, kWeightColumns};
    args.out = out_.data();
    product_(args, {0, tiles_});
  }

 private:
  host::Kernels::Function<host::ProductArgs> product_;
  std::int64_t tile_bytes_, tiles_;
  std::vector<float> values_ = std::vector<float>(kWeightColumns);
  std::vector<std::int8_t> codes_ = std::vector<std::int8_t>(kWeightColumns);
  std::vector<std::int32_t> corrections_ = std::vector<std::int32_t>(kWeightColumns);
  std::vector<std::int16_t> sums_ = std::vector<std::int16_t>(kWeightColumns);
  std::vector<float> out_ = std::vector<float>(static_cast<std::size_t>(tiles_ * host::kRowTile));
  std::vector<std::byte> weights_ = std::vector<std::byte>(static_cast<std::size_t>(tile_bytes_ * tiles_));
};

/// Instructions of product.run(), give or take the way to it and back; -1 where no process may be stepped.
std::int64_t count_instructions(TileProduct product) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    product.run();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return -1;
  std::int64_t count = 0;
  while (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0) {
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return count;
    ++count;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

/// Instructions a weight of avx512, avx2_vnni and avx2.
const std::map<std::string_view, std::array<double, 3>> kRecorded = {
    {"F32", {0.382, 0.457, 0.457}},     {"F16", {0.382, 0.519, 0.519}},    {"BF16", {0.445, 0.644, 0.644}},
    {"Q4_0", {0.107, 0.197, 0.225}},    {"Q4_1", {0.117, 0.201, 0.233}},   {"Q5_0", {0.147, 0.297, 0.362}},
    {"Q5_1", {0.159, 0.315, 0.371}},    {"Q8_0", {0.116, 0.166, 0.276}},   {"Q4_K", {0.105, 0.200, 0.231}},
    {"Q5_K", {0.189, 0.385, 0.406}},    {"Q6_K", {0.195, 0.397, 0.441}},   {"Q2_K", {0.196, 0.369, 0.400}},
    {"Q3_K", {0.179, 0.347, 0.379}},    {"IQ4_NL", {0.164, 0.287, 0.399}}, {"IQ4_XS", {0.150, 0.273, 0.384}},
    {"IQ3_XXS", {0.156, 0.285, 0.333}}, {"IQ3_S", {0.156, 0.285, 0.320}},  {"IQ2_XXS", {0.163, 0.321, 0.408}},
    {"IQ2_XS", {0.187, 0.366, 0.431}},  {"IQ2_S", {0.187, 0.367, 0.431}},  {"IQ1_S", {0.163, 0.321, 0.356}},
    {"IQ1_M", {0.191, 0.374, 0.406}},   {"TQ1_0", {0.143, 0.277, 0.311}},  {"TQ2_0", {0.143, 0.277, 0.311}},
    {"MXFP4", {0.166, 0.291, 0.327}},   {"NVFP4", {0.182, 0.319, 0.354}},  {"Q1_0", {0.158, 0.299, 0.335}},
    {"FP8", {0.342, 0.569, 0.569}},     {"fp9", {0.366, 0.765, 0.765}}};

struct CountedFormat {
  Format format;
  Fp8Form form = Fp8Form::kFp8;

  const char* name() const { return form == Fp8Form::kFp9 ? "fp9" : format_name(format); }
};
std::vector<CountedFormat> counted_formats() {
  std::vector<CountedFormat> formats;
  for (const Format format : kAllFormats) formats.push_back({format});
  formats.push_back({Format::kFP8_E4M3, Fp8Form::kFp9});
  return formats;
}

TEST(InstructionCount, IsAsRecorded) {
#if !defined(NDEBUG) || defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "recorded for optimised builds of GCC";
#endif
  const Machine machine = detect_machine();
  for (const CountedFormat& counted : counted_formats()) {
    const std::array<double, 3>& recorded = kRecorded.at(counted.name());
    std::printf("%-8s", counted.name());
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      constexpr const char* kIsas[] = {"avx512", "avx2_vnni", "avx2"};
      const host::Kernels* kernels = cpu_kernels(machine, kIsas[i], counted.form);
      if (kernels == nullptr) continue;
      const std::int64_t idle = count_instructions({*kernels, counted.format, 0});
      const std::int64_t busy = count_instructions({*kernels, counted.format, 1});
      if (idle < 0 || busy < 0) GTEST_SKIP() << "this process may not step through another";
      const double per_weight =
          static_cast<double>(busy - idle) / static_cast<double>(host::kRowTile * kWeightColumns);
      std::printf(" %s %.3f", kIsas[i], per_weight);
      EXPECT_LT(per_weight, 1.1 * recorded[i]) << counted.name() << ", " << kIsas[i];
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace eider
#endif
