// `eider bench`: measures the machine, kernels and whole models, and says how near they come to each other.
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/file.h"
#include "bench/compare.h"
#include "bench/estimate.h"
#include "bench/host_info.h"
#include "bench/html_report.h"
#include "bench/kernel_bench.h"
#include "bench/machine_bench.h"
#include "bench/model_bench.h"
#include "bench/report.h"
#include "text/json_text.h"
#include "tools/bench_ab.h"
#include "tools/bench_flags.h"
#include "tools/commands.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/loading.h"
#include "tools/local_time.h"
#include "tools/memory.h"
#include "weights/synthetic.h"

namespace eider {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace)

/// A model that is measured: a file, or a synthetic one.
struct Subject {
  std::string path;
  std::optional<SyntheticSpec> synthetic;
};

Status write_page(const Results& results, const File& file) {
  const std::string page = html_report(results, local_time(std::time(nullptr)));
  EIDER_TRY_STATUS(file.truncate(0));
  return file.write(0, std::as_bytes(std::span(page)));
}

class Bench {
 public:
  Bench(const BenchFlags& flags, const std::optional<AbCommands>& ab, const Terminal& terminal)
      : flags_(flags),
        ab_(ab),
        terminal_(terminal),
        machine_(detect_machine()),
        host_(describe_host(machine_)),
        threads_(flags.threads) {
    if (threads_.empty()) threads_.push_back(machine_.default_threads());
  }

  Result<int> run() {
    const std::vector<Subject> subjects = list_subjects();
    if (flags_.write) return write(subjects.front());
    if (!flags_.compare.empty()) return compare_files();
    std::optional<File> page;
    if (flags_.html) {
      EIDER_TRY(page, File::open(*flags_.html, File::Mode::kCreate));  // a wrong path shows before the work
    }
    Results results{.host = host_};
    EIDER_TRY_STATUS(ab_ ? compare_sides(results) : measure(subjects, results));
    EIDER_TRY_STATUS(show_json(results_json(results)));
    if (page) EIDER_TRY_STATUS(write_page(results, *page));
    return kExitSuccess;
  }

 private:
  std::vector<Subject> list_subjects() const {
    std::vector<Subject> subjects;
    for (const std::string& path : flags_.models) subjects.push_back({path, {}});
    const std::vector<Format> formats = flags_.formats.empty() ? std::vector{Format::kQ8_0} : flags_.formats;
    for (const ModelShape& shape : flags_.synthetic)
      for (const Format format : formats)
        subjects.push_back({"", SyntheticSpec{shape, format, flags_.layers, flags_.seed}});
    return subjects;
  }

  Result<int> write(const Subject& subject) {
    ThreadPool pool(static_cast<int>(threads_.front()));
    EIDER_TRY(const SyntheticModel model, SyntheticModel::create(*subject.synthetic, pool));
    ProgressBar bar(terminal_, "writing");
    EIDER_TRY_STATUS(model.write(*flags_.write, draw(bar)));
    bar.erase();
    std::int64_t bytes = 0;
    for (const TensorView& tensor : model.tensors()) bytes += tensor.bytes();
    terminal_.note(fmt::format("{}: {}, {}", *flags_.write, model.name(), format_bytes(bytes)));
    return kExitSuccess;
  }

  Result<int> compare_files() {
    std::array<nlohmann::ordered_json, 2> results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      EIDER_TRY(const std::string text, read_file(flags_.compare[i]));
      results[i] = parse_ordered_json(text);
      if (results[i].is_discarded()) return error("{}: is not JSON", flags_.compare[i]);
    }
    EIDER_TRY(const Comparison comparison, compare_results(results[0], results[1]).context("--compare"));
    for (const std::string& warning : comparison.warnings) terminal_.warning(warning);
    if (comparison.only_before + comparison.only_after > 0)
      terminal_.note(fmt::format("not compared: {} rows that only {} has, {} that only {} has",
                                 comparison.only_before, flags_.compare[0], comparison.only_after,
                                 flags_.compare[1]));
    EIDER_TRY_STATUS(show(comparison_table(comparison)));
    EIDER_TRY_STATUS(show_json(comparison_json(comparison)));
    return kExitSuccess;
  }

  Status compare_sides(Results& results) {
    ThreadPool pool(machine_.default_threads());
    EIDER_TRY(const PagedMemory memory, PagedMemory::create(cold_bytes(), Pages::kHuge, pool));
    results.ab_sides = ab_->sides;
    EIDER_TRY(results.ab,
              run_ab(
                  *ab_, static_cast<int>(flags_.pairs),
                  [&] { return measure_memory_read(memory, machine_, pool); }, terminal_, interrupt_));
    if (results.ab->out_of_time)
      tell_cut(results, fmt::format("{} of {} pairs were run", results.ab->pairs.size(), flags_.pairs));
    return show(ab_table(ab_->sides, *results.ab));
  }

  /// Everything that is asked for, each table as soon as it is there.
  Status measure(const std::vector<Subject>& subjects, Results& results) {
    if (flags_.machine || (!flags_.kernels && subjects.empty())) {
      EIDER_TRY(results.machine, measure_machine());
      if (!results.machine->complete) tell_cut(results, "not all speeds of the machine were measured");
      EIDER_TRY_STATUS(show(host_table(host_)));
      for (const Table& table : machine_tables(*results.machine)) EIDER_TRY_STATUS(show(table));
    }
    if (flags_.kernels) EIDER_TRY_STATUS(measure_kernels(results));
    if (!results.kernels.empty()) EIDER_TRY_STATUS(show(kernel_table(results.kernels)));
    if (!results.attention.empty()) EIDER_TRY_STATUS(show(attention_table(results.attention)));
    for (const Subject& subject : subjects) EIDER_TRY_STATUS(measure(subject, results));
    return subjects.empty() ? Status() : show(model_table(results.models));
  }

  Result<MachineReport> measure_machine() {
    const auto threads = static_cast<int>(std::ranges::max(threads_));
    const MachineOptions options{threads, static_cast<int>(flags_.repetitions), cold_bytes()};
    const TimeLimit limit = announce("the machine", most_seconds(options));
    ProgressBar bar(terminal_, "machine");
    return bench::measure_machine(machine_, host_, options, draw(bar), limit);
  }

  /// Kernels are measured in the stored form where nothing is asked for.
  Fp8Form kernels_fp8_form() const { return flags_.engine.fp8_as.value_or(Fp8Form::kFp8); }

  std::vector<KernelCase> product_cases() const {
    std::vector<KernelCase> cases;
    std::vector<Format> formats = flags_.formats;
    if (formats.empty() && flags_.heads.empty())  // what most models hold: all take half an hour
      formats = {Format::kQ4_K, Format::kQ6_K, Format::kQ8_0, Format::kBF16};
    for (const Format format : formats)
      for (const auto& [rows, columns] : flags_.shapes)
        for (const std::int64_t tokens : flags_.tokens)
          for (const bool cold : {true, false})
            cases.push_back({format, rows, columns, tokens, cold, kernels_fp8_form()});
    return cases;
  }

  std::vector<AttentionCase> attention_cases() const {
    std::vector<AttentionCase> cases;
    std::vector<HeadShape> shapes = flags_.heads;
    if (shapes.empty() && flags_.formats.empty()) shapes = {{32, 8, 128}};  // of Qwen3-4B
    for (const HeadShape& shape : shapes)
      for (const KvType type : {KvType::kF16, KvType::kF32})
        for (const auto& [tokens, position] : {std::pair{1, 4096}, std::pair{512, 0}, std::pair{512, 4096}})
          cases.push_back({shape, type, tokens, position});
    return cases;
  }

  /// Products and attention with every number of threads.
  Status measure_kernels(Results& results) {
    const std::string isa = flags_.engine.isa.value_or(host_.isas.front());
    for (const std::int64_t threads : threads_) {
      ThreadPool pool(static_cast<int>(threads));
      EIDER_TRY(const std::unique_ptr<Backend> backend,
                make_cpu_backend(pool, machine_, isa, kernels_fp8_form()).context("--isa"));
      EIDER_TRY(const PagedMemory memory, PagedMemory::create(cold_bytes(), Pages::kHuge, pool));
      EIDER_TRY_STATUS(measure_kernels(*backend, isa, pool, memory, results));
    }
    return {};
  }

  Status measure_kernels(Backend& backend, const std::string& isa, ThreadPool& pool,
                         const PagedMemory& memory, Results& results) {
    const auto samples = static_cast<int>(flags_.repetitions);
    const std::function<Roof()> roof = read_roof(memory, isa, pool);
    const Roof now = roof();
    const auto cold = static_cast<double>(memory.size());
    const std::vector<KernelCase> products = product_cases();
    const std::vector<AttentionCase> attention = attention_cases();
    const TimeLimit limit =
        announce(fmt::format("kernels, {}", isa),
                 most_seconds(products, samples, now, cold) + most_seconds(attention, samples, now, cold));
    ProgressBar bar(terminal_, fmt::format("kernels, {}", isa));
    EIDER_TRY(std::vector<KernelResult> of_products,
              bench::measure_kernels(
                  {*cpu_kernels(machine_, isa, kernels_fp8_form()), pool, memory, host_.l2_bytes}, products,
                  samples, roof, draw(bar), limit));
    EIDER_TRY(
        std::vector<AttentionResult> of_attention,
        measure_attention({backend, isa, pool.size(), memory}, attention, samples, roof, draw(bar), limit));
    bar.erase();
    const std::size_t wanted = products.size() + attention.size(),
                      done = of_products.size() + of_attention.size();
    if (done < wanted) tell_cut(results, fmt::format("{} of {} kernels were measured", done, wanted));
    std::ranges::move(of_products, std::back_inserter(results.kernels));
    std::ranges::move(of_attention, std::back_inserter(results.attention));
    return {};
  }

  /// Whether a subject has FP8 weights, without making it.
  static Result<bool> is_fp8(const Subject& subject) {
    if (subject.synthetic) return subject.synthetic->format == Format::kFP8_E4M3;
    EIDER_TRY(const Model model, open_model(subject.path));
    return has_fp8_weights(model);
  }

  /// Every number of threads and of rows of a step, each with an engine of its own.
  Status measure(const Subject& subject, Results& results) {
    EIDER_TRY(const bool fp8, is_fp8(subject));
    for (const std::int64_t threads : threads_) {
      EngineFlags engine_flags = flags_.engine;
      engine_flags.threads = static_cast<int>(threads);
      EIDER_TRY(const Compute compute, create_compute(engine_flags, machine_, fp8));
      std::optional<PagedMemory> memory;
      std::function<Roof()> roof;
      if (!flags_.no_roof) {
        EIDER_TRY(memory, PagedMemory::create(cold_bytes(), Pages::kHuge, *compute.pool));
        roof = read_roof(*memory, flags_.engine.isa.value_or(host_.isas.front()), *compute.pool);
      }
      for (const std::int64_t batch : flags_.batches)
        EIDER_TRY_STATUS(measure(subject, compute, batch, roof, results));
    }
    return {};
  }

  Status measure(const Subject& subject, const Compute& compute, std::int64_t batch,
                 const std::function<Roof()>& roof, Results& results) {
    EIDER_TRY(Model model, open(subject, *compute.pool));
    ModelRun run{.model = subject.synthetic ? model.checkpoint->path()
                                            : std::filesystem::path(subject.path).filename().string(),
                 .backend = compute.backend->name(),
                 .weight_bytes = model.checkpoint->weight_bytes(),
                 .threads = compute.pool->size(),
                 .max_batch_tokens = batch};
    for (const auto& [name, tensor] : model.checkpoint->tensors()) run.parameters += tensor.shape.elements();
    const std::vector<ModelTest> tests = flags_.tests();
    EngineOptions options;
    options.context = context_of(tests);
    options.max_batch_tokens = std::min(batch, options.context);
    options.max_logit_rows = 1;
    options.kv_type = flags_.engine.kv_type;
    // The weights themselves are pages of their file, or few (synthetic.h).
    const MemoryNeeds needs = memory_needs(model, *compute.backend, options);
    if (needs.working + needs.kv > detect_machine().available_memory)
      return error("{}: a context of {} {}, but {} of memory is free", run.model, options.context,
                   describe(needs), format_bytes(detect_machine().available_memory));

    EIDER_TRY(const std::unique_ptr<Engine> engine, load_engine(std::move(model), *compute.backend, options,
                                                                flags_.engine.cache, terminal_, interrupt_));
    // The check and the writing would disturb what is measured.
    EIDER_TRY_STATUS(finish_cache(*engine, terminal_, interrupt_));
    const auto repetitions = static_cast<int>(flags_.repetitions);
    TimeLimit limit;
    if (roof && flags_.engine.backend != "reference")
      limit = announce(run.model,
                       most_seconds(engine->model().plan, options.kv_type, tests, repetitions, roof()));
    ProgressBar bar(terminal_, run.model);
    EIDER_TRY(std::vector<ModelResult> measured,
              measure_model(*engine, run, tests, repetitions, roof, draw(bar), limit).context(run.model));
    bar.erase();
    for (const ModelTest& test : std::span(tests).subspan(measured.size()))
      tell_cut(results, fmt::format("{} {} was not measured", run.model, test.name()));
    for (ModelResult& result : measured) {
      if (const std::size_t done = result.tok_s.values().size(); std::cmp_less(done, repetitions))
        tell_cut(results, fmt::format("{} {} was repeated {} of {} times", run.model, result.test.name(),
                                      done, repetitions));
      warn_of_change(result);
      results.models.push_back(std::move(result));
    }
    return {};
  }

  Result<Model> open(const Subject& subject, ThreadPool& pool) const {
    if (!subject.synthetic) return open_model(subject.path);
    EIDER_TRY(const SyntheticModel synthetic, SyntheticModel::create(*subject.synthetic, pool));
    EIDER_TRY(std::shared_ptr<const Checkpoint> checkpoint, synthetic.checkpoint());
    return load_model(std::move(checkpoint)).context(synthetic.name());
  }

  /// Says how long something takes at most, and gives the limit that makes it true. What takes a moment only
  /// is not announced and has no limit.
  TimeLimit announce(const std::string& what, double seconds) const {
    constexpr double kWorthTelling = 10;
    if (seconds < kWorthTelling) return {};
    terminal_.note(fmt::format("{}: at most {:.0f} s", what, seconds));
    return TimeLimit(seconds);
  }

  /// Tells at once, and in the report, what the limit left.
  void tell_cut(Results& results, const std::string& what) const {
    results.cut_short.push_back("the time was over: " + what);
    terminal_.warning(results.cut_short.back());
  }

  void warn_of_change(const ModelResult& result) const {
    constexpr double kTolerated = 0.1;
    if (std::abs(result.roof_change) > kTolerated)
      terminal_.warning(
          fmt::format("{} {}: the machine's read bandwidth moved by {:+.0f} % meanwhile; run it again",
                      result.run.model, result.test.name(), 100 * result.roof_change));
  }

  std::function<Roof()> read_roof(const PagedMemory& memory, const std::string& isa, ThreadPool& pool) const {
    return [&, isa] { return measure_roof(memory, machine_, isa, host_.l2_bytes, pool); };
  }

  std::size_t cold_bytes() const { return flags_.cold_bytes.value_or(default_cold_bytes(machine_, host_)); }

  /// Draws `bar` and stops at Ctrl-C.
  Progress draw(ProgressBar& bar) const {
    return [&bar, this](std::int64_t done, std::int64_t total) {
      bar.update(done, total);
      return !interrupt_.interrupted();
    };
  }

  Status show(const Table& table) const {
    return flags_.json ? Status() : write_stdout(to_string(table, flags_.style) + "\n");
  }

  Status show_json(const nlohmann::ordered_json& json) const {
    return flags_.json ? write_stdout(to_json_text(json, 2) + "\n") : Status();
  }

  const BenchFlags& flags_;
  const std::optional<AbCommands>& ab_;
  const Terminal& terminal_;
  InterruptGuard interrupt_;
  Machine machine_;
  HostInfo host_;
  std::vector<std::int64_t> threads_;
};

constexpr const char* kBenchExamples =
    R"(A prompt of 512 tokens is the test pp512, 128 decoded tokens are tg128, as in llama-bench. "roof" is the
share of what the machine can do, measured beside each test: of its read bandwidth in decoding, of its
int8 or fp32 peak (as the weights' format multiplies) in prompts. Figures are medians, ± half the distance
of the quartiles. MB/token: weights, keys and values that one decoded token reads.

Examples:
  eider bench                                                  the machine's bandwidth, peaks and barriers
  eider bench -m model.gguf                                    pp512 and tg128
  eider bench -m a.gguf -m b.gguf -p 512 -n 128 -d 0,4096 -t 1,2 -o md
  eider bench --synthetic qwen3-30b-a3b --layers 4 --format q4_k,q8_0
  eider bench --synthetic qwen3-4b --format q4_k --write qwen3-4b.gguf && llama-bench -m qwen3-4b.gguf
  eider bench --kernels --format q4_k,q8_0 --tokens 1,64 --shapes 9728x2560
  eider bench --machine --kernels -m model.gguf --json         everything, for programs
  eider bench -m model.gguf --ab "-t 1" "-t 2"                 which is faster, and how sure that is
  eider bench --ab "-m model.gguf -p 0" "cmd:llama-bench -m model.gguf -p 0 -r 3 -o json"
  eider bench --compare monday.json tuesday.json
  eider bench --machine --kernels -m model.gguf -d 0,1024,4096 --html report.html)";

}  // namespace

void add_bench_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<BenchFlags>();
  const auto choose = [flags, &action]() -> Status {
    EIDER_TRY_STATUS(check_bench_flags(*flags));
    std::optional<AbCommands> ab;
    if (!flags->ab.empty()) {
      EIDER_TRY(ab, ab_commands(*flags));
    }
    action = [flags, ab](const Terminal& terminal) { return Bench(*flags, ab, terminal).run(); };
    return {};
  };
  CLI::App& command = add_command(
      program, "bench", "Measures this machine, kernels and models, and how near they come to its limits",
      kBenchExamples, choose);
  add_bench_flags(command, *flags);
}

}  // namespace eider
