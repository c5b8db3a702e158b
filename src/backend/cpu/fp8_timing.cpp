#include "backend/cpu/fp8_timing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/check.h"
#include "tensor/buffer.h"

namespace eider {
namespace {

using host::kRowTile;

constexpr std::int64_t kColumns = kFp8TimingCodes / kRowTile;

/// A large matrix in one of the forms.
class Decoding {
 public:
  static Result<Decoding> create(const host::Kernels& kernels, ThreadPool& pool, std::size_t bytes,
                                 std::span<const std::byte> codes) {
    const std::int64_t tile_bytes = kernels.packing->tile_bytes(Format::kFP8_E4M3, kColumns, {});
    const std::int64_t tiles = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes) / tile_bytes);
    EIDER_TRY(Buffer weights, Buffer::allocate(static_cast<std::size_t>(tiles * tile_bytes)));
    std::vector<std::byte> tile(static_cast<std::size_t>(tile_bytes));
    kernels.packing->pack_tile(Format::kFP8_E4M3, {codes.data(), kColumns, kRowTile, kColumns}, 0,
                               tile.data());
    pool.run([&](int thread) {
      const auto [begin, end] = ThreadPool::share(tiles, 1, thread, pool.size());
      for (std::int64_t i = begin; i < end; ++i)
        std::memcpy(weights.data() + i * tile_bytes, tile.data(), tile.size());
    });
    return Decoding(kernels, pool, std::move(weights), tile_bytes, tiles);
  }

  double seconds_a_weight() {
    using Clock = std::chrono::steady_clock;
    host::ProductArgs args{};
    args.in.values = input_.data();
    args.count = 1;
    args.weight = {weights_.data(), tile_bytes_, tiles_ * kRowTile, kColumns};
    args.out = out_.data();
    const auto product = kernels_.product[static_cast<std::size_t>(Format::kFP8_E4M3)];
    const Clock::time_point begin = Clock::now();
    pool_.run([&](int thread) {
      const auto [first, last] = ThreadPool::share(tiles_, 1, thread, pool_.size());
      product(args, {first, last});
    });
    const std::chrono::duration<double> passed = Clock::now() - begin;
    return passed.count() / static_cast<double>(tiles_);
  }

 private:
  Decoding(const host::Kernels& kernels, ThreadPool& pool, Buffer weights, std::int64_t tile_bytes,
           std::int64_t tiles)
      : kernels_(kernels),
        pool_(pool),
        weights_(std::move(weights)),
        tile_bytes_(tile_bytes),
        tiles_(tiles),
        input_(kColumns, 0x1p90f),
        out_(static_cast<std::size_t>(tiles * kRowTile)) {}

  const host::Kernels& kernels_;
  ThreadPool& pool_;
  Buffer weights_;
  std::int64_t tile_bytes_, tiles_;
  std::vector<float> input_;
  std::vector<float> out_;
};

}  // namespace

Result<Fp8Form> measure_faster_fp8_form(const Machine& machine, std::string_view isa, ThreadPool& pool,
                                        std::size_t bytes, std::span<const std::byte> codes) {
  EIDER_CHECK_EQ(static_cast<std::int64_t>(codes.size()), kFp8TimingCodes);
  constexpr int kRounds = 5;  // the best of them, for others may be using the machine
  double best[] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  std::vector<Decoding> forms;
  for (const Fp8Form form : {Fp8Form::kFp8, Fp8Form::kFp9}) {
    const host::Kernels* kernels = cpu_kernels(machine, isa, form);
    EIDER_CHECK(kernels != nullptr);
    EIDER_TRY(Decoding decoding, Decoding::create(*kernels, pool, bytes, codes));
    forms.push_back(std::move(decoding));
  }
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t form = 0; form < forms.size(); ++form)
      best[form] = std::min(best[form], forms[form].seconds_a_weight());
  return best[1] < best[0] ? Fp8Form::kFp9 : Fp8Form::kFp8;
}

}  // namespace eider
