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
constexpr std::int64_t kPromptTokens = 64;
constexpr double kPromptTokensForOne = 4;

/// A large matrix in one of the forms.
class FormTiming {
 public:
  static Result<FormTiming> create(const host::Kernels& kernels, ThreadPool& pool, std::size_t bytes,
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
    EIDER_TRY(Buffer opened, Buffer::allocate(static_cast<std::size_t>(
                                 pool.size() * kernels.packing->opened_bytes(Format::kFP8_E4M3, kColumns))));
    return FormTiming(kernels, pool, std::move(weights), std::move(opened), tile_bytes, tiles);
  }

  /// Of one token, reading everything from memory, and of a prompt's, from fewer tiles, for each token.
  double seconds_a_weight(std::int64_t tokens) {
    using Clock = std::chrono::steady_clock;
    constexpr std::int64_t kPromptShare = 16;
    const std::int64_t tiles =
        tokens == 1 ? tiles_ : std::max<std::int64_t>(pool_.size(), tiles_ / kPromptShare);
    std::vector<float> out(static_cast<std::size_t>(tokens * tiles * kRowTile));
    const auto product = kernels_.product[static_cast<std::size_t>(Format::kFP8_E4M3)];
    const Clock::time_point begin = Clock::now();
    pool_.run([&](int thread) {
      host::ProductArgs args{};
      args.in.values = input_.data();
      args.count = tokens;
      args.weight = {weights_.data(), tile_bytes_, tiles * kRowTile, kColumns};
      args.opened = opened_.data() + thread * opened_bytes_;
      args.out = out.data();
      const auto [first, last] = ThreadPool::share(tiles, 1, thread, pool_.size());
      product(args, {first, last});
    });
    const std::chrono::duration<double> passed = Clock::now() - begin;
    return passed.count() / static_cast<double>(tiles * tokens);
  }

 private:
  FormTiming(const host::Kernels& kernels, ThreadPool& pool, Buffer weights, Buffer opened,
             std::int64_t tile_bytes, std::int64_t tiles)
      : kernels_(kernels),
        pool_(pool),
        weights_(std::move(weights)),
        tile_bytes_(tile_bytes),
        tiles_(tiles),
        input_(kPromptTokens * kColumns, 0x1p90f),
        opened_(std::move(opened)),
        opened_bytes_(static_cast<std::int64_t>(opened_.size()) / pool.size()) {}

  const host::Kernels& kernels_;
  ThreadPool& pool_;
  Buffer weights_;
  std::int64_t tile_bytes_, tiles_;
  std::vector<float> input_;
  Buffer opened_;
  std::int64_t opened_bytes_;  // of one thread
};

}  // namespace

Result<Fp8Form> measure_faster_fp8_form(const Machine& machine, std::string_view isa, ThreadPool& pool,
                                        std::size_t bytes, std::span<const std::byte> codes) {
  EIDER_CHECK_EQ(static_cast<std::int64_t>(codes.size()), kFp8TimingCodes);
  constexpr int kRounds = 5;  // the best of them, for others may be using the machine
  constexpr double kNever = std::numeric_limits<double>::max();
  double best[2][2] = {{kNever, kNever}, {kNever, kNever}};  // [form][one token, a prompt's]
  std::vector<FormTiming> forms;
  for (const Fp8Form form : {Fp8Form::kFp8, Fp8Form::kFp9}) {
    const host::Kernels* kernels = cpu_kernels(machine, isa, form);
    EIDER_CHECK(kernels != nullptr);
    EIDER_TRY(FormTiming timing, FormTiming::create(*kernels, pool, bytes, codes));
    forms.push_back(std::move(timing));
  }
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t form = 0; form < forms.size(); ++form)
      for (std::size_t kind = 0; kind < 2; ++kind)
        best[form][kind] =
            std::min(best[form][kind], forms[form].seconds_a_weight(kind == 0 ? 1 : kPromptTokens));
  // A conversation reads some tokens for each that it writes.
  const auto seconds = [&](std::size_t form) { return best[form][0] + kPromptTokensForOne * best[form][1]; };
  return seconds(1) < seconds(0) ? Fp8Form::kFp9 : Fp8Form::kFp8;
}

}  // namespace eider
