#include "tools/bench_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>

#include "format/all_formats.h"

namespace eider {
namespace {

constexpr const char* kModels = "Models";
constexpr const char* kKernels = "Kernels";
constexpr std::int64_t kMostTokens = 1 << 24;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::optional<std::int64_t> parse_integer(const std::string& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

/// A flag that takes a list, "a,b", and may be given again; what is given stands in place of the default.
/// `parse_item` appends to `list`, or says what is allowed.
template <class Item, class Parse>
CLI::Option* add_list_flag(CLI::App& command, const std::string& names, const std::string& type,
                           std::vector<Item>& list, Parse parse_item, const std::string& help) {
  const auto parse = [&list, parse_item, given = false](const std::string& text) mutable -> Status {
    if (!std::exchange(given, true)) list.clear();
    for (const std::string& item : split(text, ',')) EIDER_TRY_STATUS(parse_item(item, list));
    return {};
  };
  return add_value_flag(command, names, type, parse, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_integers_flag(CLI::App& command, const std::string& names, std::vector<std::int64_t>& list,
                               std::int64_t low, std::int64_t high, const std::string& help) {
  const auto parse = [low, high](const std::string& text, std::vector<std::int64_t>& into) -> Status {
    const auto value = parse_integer(text, low, high);
    if (!value)
      return error("integers from {} to {}, as in {},{}", low, high, std::max<std::int64_t>(low, 1), 64);
    into.push_back(*value);
    return {};
  };
  return add_list_flag(command, names, "N,...", list, parse, help);
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string format_names() {
  std::string names;
  for (const Format format : kAllFormats) names += (names.empty() ? "" : ", ") + lower(format_name(format));
  return names;
}

Status parse_format(const std::string& text, std::vector<Format>& list) {
  for (const Format format : kAllFormats)
    if (lower(format_name(format)) == lower(text)) {
      list.push_back(format);
      return {};
    }
  return error("{}", format_names());
}

Status parse_shape(const std::string& text, std::vector<ModelShape>& list) {
  Result<ModelShape> shape = find_model_shape(text);
  if (!shape.ok()) return error("{}", model_shape_names());
  list.push_back(*shape);
  return {};
}

Status parse_matrix(const std::string& text, std::vector<std::pair<std::int64_t, std::int64_t>>& list) {
  constexpr std::int64_t kMost = 1 << 20;
  const std::vector<std::string> sides = split(text, 'x');
  const auto rows = parse_integer(sides.front(), 1, kMost);
  const auto columns = parse_integer(sides.back(), 1, kMost);
  if (sides.size() != 2 || !rows || !columns) return error("ROWSxCOLUMNS, as in 9728x2560");
  list.emplace_back(*rows, *columns);
  return {};
}

Status parse_heads(const std::string& text, std::vector<bench::HeadShape>& list) {
  constexpr std::int64_t kMost = 1024;
  const std::vector<std::string> parts = split(text, 'x');
  const std::vector<std::string> counts = split(parts.front(), ':');
  const auto heads = parse_integer(counts.front(), 1, kMost),
             kv_heads = parse_integer(counts.back(), 1, kMost);
  const auto head_dim = parse_integer(parts.back(), 1, kMost);
  if (parts.size() != 2 || counts.size() != 2 || !heads || !kv_heads || !head_dim || *heads % *kv_heads != 0)
    return error("HEADS:KV_HEADSxHEAD_DIM, as in 32:8x128, heads a multiple of KV heads");
  list.push_back({*heads, *kv_heads, *head_dim});
  return {};
}

Status parse_output(const std::string& text, BenchFlags& flags) {
  flags.json = text == "json";
  if (text == "csv")
    flags.style = bench::TableStyle::kCsv;
  else if (text == "md")
    flags.style = bench::TableStyle::kMarkdown;
  else if (text == "text")
    flags.style = bench::TableStyle::kText;
  else if (text != "json")
    return error("text, md, csv or json");
  return {};
}

void add_model_flags(CLI::App& command, BenchFlags& flags) {
  command.add_option("-m,--model", flags.models, "A model file or directory; may be given again")
      ->type_name("PATH")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kModels);
  add_list_flag(command, "--synthetic", "SHAPE,...", flags.synthetic, parse_shape,
                "A model of random weights at the shape of " + model_shape_names())
      ->group(kModels);
  add_integer_flag(
      command, "--layers", [&flags](std::int64_t n) { flags.layers = n; }, 1, 4096,
      "Only the first N layers of synthetic models [all]")
      ->group(kModels);
  add_integer_flag(
      command, "--seed", [&flags](std::int64_t n) { flags.seed = static_cast<std::uint64_t>(n); }, 0,
      std::int64_t{1} << 31, "Of synthetic weights; the same seed makes the same bytes [1]")
      ->group(kModels);
  add_text_flag(command, "--write", "FILE.gguf", flags.write,
                "Writes the synthetic model for other programs instead of measuring it");
  command.get_option("--write")->group(kModels);
  add_integers_flag(command, "-p,--n-prompt", flags.prompts, 0, kMostTokens,
                    "Prompts of so many tokens; 0: none [512]")
      ->group(kModels);
  add_integers_flag(command, "-n,--n-gen", flags.generates, 0, kMostTokens,
                    "So many tokens decoded one by one; 0: none [128]")
      ->group(kModels);
  add_integers_flag(command, "-d,--n-depth", flags.depths, 0, kMostTokens,
                    "With so many tokens in the context before [0]")
      ->group(kModels);
}

void add_comparison_flags(CLI::App& command, BenchFlags& flags) {
  constexpr const char* kComparisons = "Comparisons";
  command
      .add_option("--ab", flags.ab,
                  "Two sides in turn on the same work, as the ratio B / A: each the flags that it has beside "
                  "the others given here, or cmd:COMMAND for another program")
      ->type_name("A B")
      ->type_size(2)  // expected(2) would take a second side of "-t 2" for a flag
      ->expected(1)
      ->group(kComparisons);
  add_integer_flag(
      command, "--pairs", [&flags](std::int64_t n) { flags.pairs = n; }, 1, 1000,
      "How often both sides of --ab are run [10]")
      ->group(kComparisons);
  command.add_option("--compare", flags.compare, "Two files that --json wrote, as the ratio NEW / OLD")
      ->type_name("OLD NEW")
      ->type_size(2)
      ->expected(1)
      ->group(kComparisons);
}

constexpr const char* kFooter =
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

std::vector<bench::ModelTest> BenchFlags::tests() const {
  std::vector<bench::ModelTest> tests;
  for (const std::int64_t depth : depths) {
    for (const std::int64_t prompt : prompts)
      if (prompt > 0) tests.push_back({.prompt = prompt, .depth = depth});
    for (const std::int64_t generate : generates)
      if (generate > 0) tests.push_back({.generate = generate, .depth = depth});
  }
  return tests;
}

void check_bench_flags(const BenchFlags& flags) {
  const auto refuse = [](const char* flag, const std::string& message) {
    throw CLI::ValidationError(flag, message);
  };
  const bool models = !flags.models.empty() || !flags.synthetic.empty();
  const bool measures_here = flags.machine || flags.kernels || (models && flags.ab.empty());
  if (flags.write && (flags.synthetic.size() != 1 || flags.formats.size() > 1))
    refuse("--write", "needs --synthetic with one shape, and one --format");
  if (flags.write && (flags.machine || flags.kernels || !flags.models.empty() || !flags.ab.empty()))
    refuse("--write", "measures nothing; write first, then measure the file");
  if (!flags.ab.empty() && measures_here)
    refuse("--ab", "compares models only, without --machine and --kernels");
  if (!flags.compare.empty() && (measures_here || flags.write || flags.html || !flags.ab.empty()))
    refuse("--compare", "measures nothing: it reads two earlier results");
  if (flags.write && flags.html) refuse("--html", "not with --write, which measures nothing");
  if (models && flags.tests().empty()) refuse("--n-prompt", "with -p 0 and -n 0 there is nothing to measure");
  if (flags.layers > 0 && flags.synthetic.empty() && flags.ab.empty())
    refuse("--layers", "only --synthetic models can be cut");
}

void add_bench_flags(CLI::App& command, BenchFlags& flags) {
  constexpr std::int64_t kMostMib = 1 << 20;
  flags.prompts = {512};
  flags.generates = {128};
  flags.depths = {0};
  flags.batches = {512};
  flags.tokens = {1, 8, 64, 512};
  flags.shapes = {{9728, 2560}, {2560, 9728}};  // the feed-forward matrices of Qwen3-4B

  command.add_flag("--machine", flags.machine, "Measures the machine itself (without other wishes: this)");
  command.add_flag("--kernels", flags.kernels,
                   "Measures products and attention by format, shape and instruction set");
  add_model_flags(command, flags);
  add_list_flag(command, "--format", "NAME,...", flags.formats, parse_format,
                "Of synthetic models [q8_0] and kernels [all]: " + format_names());
  add_list_flag(command, "--shapes", "RxC,...", flags.shapes, parse_matrix,
                "Rows and columns of weights [9728x2560,2560x9728]")
      ->group(kKernels);
  add_integers_flag(command, "--tokens", flags.tokens, 1, 4096, "Tokens multiplied at a time [1,8,64,512]")
      ->group(kKernels);
  add_list_flag(command, "--heads", "H:KVxD,...", flags.heads, parse_heads,
                "Query heads, KV heads and head_dim of attention [32:8x128; none where --format is given]")
      ->group(kKernels);
  add_integer_flag(
      command, "-r,--repetitions", [&flags](std::int64_t n) { flags.repetitions = n; }, 1, 1000,
      "Samples of each figure [5; with --ab 3 of each run]");
  add_backend_flags(command, flags.engine);
  add_integers_flag(command, "-t,--threads", flags.threads, 1, kMaxThreads,
                    "Threads [the physical cores that this process may use]")
      ->group(kEngineGroup);
  add_integers_flag(command, "--ubatch-size", flags.batches, 1, kMaxBatchTokens,
                    "(-ub) Most prompt tokens computed at once [512]")
      ->group(kEngineGroup);
  add_integer_flag(
      command, "--cold-mib",
      [&flags](std::int64_t n) { flags.cold_bytes = static_cast<std::size_t>(n) << 20; }, 8, kMostMib,
      "MiB that measurements of memory walk [4 times the last-level cache, 256 to 1024]");
  command.add_flag("--no-roof", flags.no_roof, "Measures models without the roofs beside them: sooner done");
  add_comparison_flags(command, flags);
  const auto output = [&flags](const std::string& text) { return parse_output(text, flags); };
  add_value_flag(command, "-o,--output", "STYLE", output, "text, md, csv or json [text]");
  add_text_flag(command, "--html", "FILE", flags.html,
                "Also writes a page with pictures of what was measured");
  command.add_flag_callback(
      "--json", [&flags] { flags.json = true; }, "The same as -o json");
  command.footer(kFooter);
}

}  // namespace eider
