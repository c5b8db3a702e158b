#include "bench/kernel_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/host/phase.h"
#include "base/random.h"
#include "format/storage_format.h"
#include "tensor/buffer.h"
#include "weights/random_weights.h"

namespace eider::bench {
namespace {

using host::kRowTile;
using host::ProductArgs;

/// What products of one case read and write beside the weight.
class Activations {
 public:
  static Result<Activations> create(const KernelCase& kernel, const KernelSetup& setup) {
    const host::Kernels& kernels = setup.kernels;
    const ProductRule rule = host::product_rule(kernel.format);
    auto layout = host::quantized_layout(rule, kernel.tokens, kernel.columns);
    if (rule == ProductRule::kScaledFloat) layout.bytes = kernel.tokens * kernel.columns * 4;
    const std::int64_t opened_bytes =
        kernels.packing == nullptr ? 0 : kernels.packing->opened_bytes(kernel.format, kernel.columns);
    const auto allocate = [](std::int64_t bytes) {
      return Buffer::allocate(static_cast<std::size_t>(bytes));
    };
    EIDER_TRY(Buffer values, allocate(kernel.tokens * kernel.columns * 4));
    EIDER_TRY(Buffer quantized, allocate(layout.bytes));
    EIDER_TRY(Buffer opened, allocate(opened_bytes * setup.pool.size()));
    EIDER_TRY(Buffer out, allocate(kernel.tokens * kernel.rows * 4));
    Activations made{std::move(values), std::move(quantized), std::move(opened),
                     std::move(out),    kernel.tokens,        opened_bytes};

    auto* value = reinterpret_cast<float*>(made.values.data());
    for (std::int64_t i = 0; i < kernel.tokens * kernel.columns; ++i)
      value[i] = static_cast<float>(uniform_draw(1, static_cast<std::uint64_t>(i), 0) * 2 - 1);
    // The layout is the executor's, so it is the executor that finds the parts.
    const host::InputForm form{rule,
                               value,
                               [tokens = kernel.tokens](const StepState&) { return tokens; },
                               kernel.columns,
                               made.quantized.data(),
                               layout};
    made.in = form.at({});
    if (rule == ProductRule::kScaledFloat) {
      kernels.scale_input({value, nullptr, kernel.columns, reinterpret_cast<float*>(made.quantized.data())},
                          {0, kernel.tokens});
    } else if (rule != ProductRule::kFloat) {
      const auto quantize = rule == ProductRule::kInteger256 ? kernels.quantize_256 : kernels.quantize_32;
      quantize({value, nullptr, kernel.columns, made.in.quantized},
               {0, kernel.columns / host::unit_columns(rule) * kernel.tokens});
    }
    return made;
  }

  ProductArgs multiply(const host::Matrix& weight, int thread) {
    ProductArgs args{};
    args.in = in;
    args.count = tokens;
    args.weight = weight;
    args.opened = opened.data() + thread * opened_bytes;
    args.out = reinterpret_cast<float*>(out.data());
    return args;
  }

  Buffer values, quantized, opened, out;
  std::int64_t tokens = 0;
  std::int64_t opened_bytes = 0;  // of a thread
  host::ProductInput in{};
};

/// Copies of one matrix in the setup's memory, as the table reads them: one of fewer rows for a warm cache.
Result<std::vector<host::Matrix>> lay_out(const KernelSetup& setup, const KernelCase& kernel) {
  const host::Kernels& kernels = setup.kernels;
  ThreadPool& pool = setup.pool;
  const std::int64_t row_bytes = format_row_bytes(kernel.format, kernel.columns);
  const std::int64_t tile_bytes = kernels.packing == nullptr
                                      ? kRowTile * row_bytes
                                      : kernels.packing->tile_bytes(kernel.format, kernel.columns, {});
  std::int64_t rows = kernel.rows;
  if (!kernel.cold) {
    const std::int64_t fitting = static_cast<std::int64_t>(setup.cache_bytes) / 2 / tile_bytes;  // tiles
    rows = std::min(rows, std::max<std::int64_t>(1, fitting) * kRowTile * pool.size());
  }
  const std::int64_t tiles = host::row_tiles(rows);
  const std::int64_t bytes = (tiles * tile_bytes + 63) / 64 * 64;
  const std::int64_t copies = kernel.cold ? static_cast<std::int64_t>(setup.memory.size()) / bytes : 1;
  if (copies == 0)
    return error("{} x {} {} takes {} bytes, more than the {} that cold measurements walk", rows,
                 kernel.columns, format_name(kernel.format), bytes, setup.memory.size());

  std::byte* first = setup.memory.data();
  const std::int64_t blocks = rows * kernel.columns / format_block_elems(kernel.format);
  if (kernels.packing == nullptr) {
    fill_random_weights(kernel.format, 1, blocks, first, pool);
  } else {
    EIDER_TRY(Buffer stored, Buffer::allocate(static_cast<std::size_t>(rows * row_bytes)));
    fill_random_weights(kernel.format, 1, blocks, stored.data(), pool);
    const host::Matrix matrix{stored.data(), row_bytes, rows, kernel.columns};
    pool.run([&](int thread) {
      const auto [begin, end] = ThreadPool::share(tiles, 1, thread, pool.size());
      for (std::int64_t tile = begin; tile < end; ++tile)
        kernels.packing->pack_tile(kernel.format, matrix, tile, first + tile * tile_bytes);
    });
  }
  pool.run([&](int thread) {
    const auto [begin, end] = ThreadPool::share(copies, 1, thread, pool.size());
    for (std::int64_t copy = std::max<std::int64_t>(1, begin); copy < end; ++copy)
      std::memcpy(first + copy * bytes, first, static_cast<std::size_t>(bytes));
  });
  std::vector<host::Matrix> matrices;
  for (std::int64_t copy = 0; copy < copies; ++copy)
    matrices.push_back(
        {first + copy * bytes, kernels.packing == nullptr ? row_bytes : tile_bytes, rows, kernel.columns});
  return matrices;
}

Result<KernelResult> measure(const KernelSetup& setup, const KernelCase& kernel, int samples,
                             const Roof& roof, const TimeLimit& limit) {
  const host::Kernels& kernels = setup.kernels;
  ThreadPool& pool = setup.pool;
  if (kernel.columns % format_block_elems(kernel.format) != 0)
    return error("{} needs a multiple of {} columns, not {}", format_name(kernel.format),
                 format_block_elems(kernel.format), kernel.columns);
  EIDER_TRY(const std::vector<host::Matrix> weights, lay_out(setup, kernel));
  EIDER_TRY(Activations activations, Activations::create(kernel, setup));
  const auto product = kernels.product[static_cast<std::size_t>(kernel.format)];
  KernelResult result{.kernel = kernel, .isa = kernels.name, .threads = pool.size(), .roof = roof};
  result.rows = weights.front().rows;

  std::size_t next = 0;
  const auto multiply = [&](std::int64_t products) {
    pool.run([&](int thread) {
      const auto [begin, end] = ThreadPool::share(host::row_tiles(result.rows), 1, thread, pool.size());
      for (std::int64_t i = 0; i < products; ++i) {
        const std::size_t copy = (next + static_cast<std::size_t>(i)) % weights.size();
        product(activations.multiply(weights[copy], thread), {begin, end});
      }
    });
    next = (next + static_cast<std::size_t>(products)) % weights.size();
  };
  multiply(1);
  const double seconds = seconds_of([&] { multiply(1); });
  const auto products = static_cast<std::int64_t>(std::ceil(kSampleSeconds / seconds));
  result.products_s = sample_rate(
      samples, static_cast<double>(products), [&] { multiply(products); }, limit);

  const double one = 1 / result.products_s.median();
  const double operations = 2.0 * static_cast<double>(result.rows * kernel.columns * kernel.tokens);
  Work work{.bytes = static_cast<double>(kernel.weight_bytes(result.rows))};
  (is_float_rule(host::product_rule(kernel.format)) ? work.fp32_ops : work.int8_ops) = operations;
  result.fraction_of_roof = share_of_roof(work, one, roof, !kernel.cold).nearest();
  return result;
}

}  // namespace

const char* KernelCase::format_text() const {
  return format == Format::kFP8_E4M3 && fp8_as == Fp8Form::kFp9 ? "fp9" : format_name(format);
}
std::int64_t KernelCase::weight_bytes(std::int64_t of_rows) const {
  const std::int64_t stored = of_rows * format_row_bytes(format, columns);
  return format == Format::kFP8_E4M3 && fp8_as == Fp8Form::kFp9 ? stored + stored / 8 : stored;
}

double KernelResult::gb_s() const {
  return static_cast<double>(kernel.weight_bytes(rows)) * products_s.median() / 1e9;
}
double KernelResult::gweights_s() const {
  return static_cast<double>(rows * kernel.columns) * products_s.median() / 1e9;
}
double KernelResult::gop_s() const {
  return 2 * gweights_s() * static_cast<double>(kernel.tokens);
}

Result<std::vector<KernelResult>> measure_kernels(const KernelSetup& setup,
                                                  const std::vector<KernelCase>& cases, int samples,
                                                  const std::function<Roof()>& read_roof,
                                                  const Progress& progress, const TimeLimit& limit) {
  std::vector<KernelResult> results;
  Roof roof;
  for (const KernelCase& kernel : cases) {
    if (limit.over()) break;
    if (results.empty() || results.back().kernel.format != kernel.format) roof = read_roof();
    EIDER_TRY(KernelResult result, measure(setup, kernel, samples, roof, limit));
    results.push_back(std::move(result));
    if (!progress(static_cast<std::int64_t>(results.size()), static_cast<std::int64_t>(cases.size())))
      return error("interrupted");
  }
  return results;
}

}  // namespace eider::bench
