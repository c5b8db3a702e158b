#include "tools/bench_flags.h"

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
void add_list_flag(CLI::App& command, const std::string& names, const std::string& type,
                   std::vector<Item>& list, Parse parse_item, const std::string& help,
                   const std::string& group = kOptionsGroup) {
  const auto parse = [&list, parse_item, given = false](const std::string& text) mutable -> Status {
    if (!std::exchange(given, true)) list.clear();
    for (const std::string& item : split(text, ',')) EIDER_TRY_STATUS(parse_item(item, list));
    return {};
  };
  add_repeated_flag(command, names, type, parse, help, group);
}

void add_integers_flag(CLI::App& command, const std::string& names, std::vector<std::int64_t>& list,
                       std::int64_t low, std::int64_t high, const std::string& help,
                       const std::string& group) {
  const auto parse = [low, high](const std::string& text, std::vector<std::int64_t>& into) -> Status {
    const auto value = parse_integer(text, low, high);
    if (!value)
      return error("integers from {} to {}, as in {},{}", low, high, std::max<std::int64_t>(low, 1), 64);
    into.push_back(*value);
    return {};
  };
  add_list_flag(command, names, "N,...", list, parse, help, group);
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
  if (lower(text) == "all") {
    list.insert(list.end(), std::begin(kAllFormats), std::end(kAllFormats));
    return {};
  }
  for (const Format format : kAllFormats)
    if (lower(format_name(format)) == lower(text)) {
      list.push_back(format);
      return {};
    }
  return error("{}, or all", format_names());
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
  const auto add_model = [&flags](const std::string& path) -> Status {
    flags.models.push_back(path);
    return {};
  };
  add_repeated_flag(command, "-m,--model", "PATH", add_model, "A model file or directory; may be given again",
                    kModels);
  add_list_flag(command, "--synthetic", "SHAPE,...", flags.synthetic, parse_shape,
                "A model of random weights at the shape of " + model_shape_names(), kModels);
  add_integer_flag(
      command, "--layers", [&flags](std::int64_t n) { flags.layers = n; }, 1, 4096,
      "Only the first N layers of synthetic models [all]", kModels);
  add_integer_flag(
      command, "--seed", [&flags](std::int64_t n) { flags.seed = static_cast<std::uint64_t>(n); }, 0,
      std::int64_t{1} << 31, "Of synthetic weights; the same seed makes the same bytes [1]", kModels);
  add_text_flag(command, "--write", "PATH", flags.write,
                "Writes the synthetic model instead of measuring it: a GGUF file, of FP8 a directory",
                kModels);
  add_integers_flag(command, "-p,--n-prompt", flags.prompts, 0, kMostTokens,
                    "Prompts of so many tokens; 0: none [512]", kModels);
  add_integers_flag(command, "-n,--n-gen", flags.generates, 0, kMostTokens,
                    "So many tokens decoded one by one; 0: none [128]", kModels);
  add_integers_flag(command, "-d,--n-depth", flags.depths, 0, kMostTokens,
                    "With so many tokens in the context before [0]", kModels);
}

void add_comparison_flags(CLI::App& command, BenchFlags& flags) {
  constexpr const char* kComparisons = "Comparisons";
  add_pair_flag(command, "--ab", "A B", flags.ab,
                "Two sides in turn on the same work, as the ratio B / A: each the flags that it has beside "
                "the others given here, or cmd:COMMAND for another program",
                kComparisons);
  add_integer_flag(
      command, "--pairs", [&flags](std::int64_t n) { flags.pairs = n; }, 1, 1000,
      "How often both sides of --ab are run [10]", kComparisons);
  add_pair_flag(command, "--compare", "OLD NEW", flags.compare,
                "Two files that --json wrote, as the ratio NEW / OLD", kComparisons);
}

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

Status check_bench_flags(const BenchFlags& flags) {
  const bool models = !flags.models.empty() || !flags.synthetic.empty();
  const bool measures_here = flags.machine || flags.kernels || (models && flags.ab.empty());
  if (flags.write && (flags.synthetic.size() != 1 || flags.formats.size() > 1))
    return error("--write: needs --synthetic with one shape, and one --format");
  if (flags.write && (flags.machine || flags.kernels || !flags.models.empty() || !flags.ab.empty()))
    return error("--write: measures nothing; write first, then measure the file");
  if (!flags.ab.empty() && measures_here)
    return error("--ab: compares models only, without --machine and --kernels");
  if (!flags.compare.empty() && (measures_here || flags.write || flags.html || !flags.ab.empty()))
    return error("--compare: measures nothing: it reads two earlier results");
  if (flags.write && flags.html) return error("--html: not with --write, which measures nothing");
  if (models && flags.tests().empty())
    return error("--n-prompt: with -p 0 and -n 0 there is nothing to measure");
  if (flags.layers > 0 && flags.synthetic.empty() && flags.ab.empty())
    return error("--layers: only --synthetic models can be cut");
  return {};
}

void add_bench_flags(CLI::App& command, BenchFlags& flags) {
  constexpr std::int64_t kMostMib = 1 << 20;
  flags.prompts = {512};
  flags.generates = {128};
  flags.depths = {0};
  flags.batches = {512};
  flags.tokens = {1, 8, 64, 512};
  flags.shapes = {{9728, 2560}, {2560, 9728}};  // the feed-forward matrices of Qwen3-4B

  add_switch(command, "--machine", flags.machine, "Measures the machine itself (without other wishes: this)");
  add_switch(command, "--kernels", flags.kernels,
             "Measures products and attention by format and shape, on one instruction set (--isa)");
  add_model_flags(command, flags);
  add_list_flag(
      command, "--format", "NAME,...", flags.formats, parse_format,
      "Of synthetic models [q8_0] and kernels [q4_k,q6_k,q8_0,bf16]: " + format_names() + ", or all");
  add_list_flag(command, "--shapes", "RxC,...", flags.shapes, parse_matrix,
                "Rows and columns of weights [9728x2560,2560x9728]", kKernels);
  add_integers_flag(command, "--tokens", flags.tokens, 1, 4096, "Tokens multiplied at a time [1,8,64,512]",
                    kKernels);
  add_list_flag(command, "--heads", "H:KVxD,...", flags.heads, parse_heads,
                "Query heads, KV heads and head_dim of attention [32:8x128; none where --format is given]",
                kKernels);
  add_integer_flag(
      command, "-r,--repetitions", [&flags](std::int64_t n) { flags.repetitions = n; }, 1, 1000,
      "Samples of each figure [5; with --ab 3 of each run]");
  add_backend_flags(command, flags.engine);
  add_integers_flag(command, "-t,--threads", flags.threads, 1, kMaxThreads,
                    "Threads [the physical cores that this process may use]", kEngineGroup);
  add_integers_flag(command, "--ubatch-size", flags.batches, 1, kMaxBatchTokens,
                    "(-ub) Most prompt tokens computed at once [512]", kEngineGroup);
  add_integer_flag(
      command, "--cold-mib",
      [&flags](std::int64_t n) { flags.cold_bytes = static_cast<std::size_t>(n) << 20; }, 8, kMostMib,
      "MiB that measurements of memory walk [4 times the last-level cache, 256 to 1024]");
  add_switch(command, "--no-roof", flags.no_roof,
             "Measures models without the roofs beside them: sooner done");
  add_comparison_flags(command, flags);
  const auto output = [&flags](const std::string& text) { return parse_output(text, flags); };
  add_value_flag(command, "-o,--output", "STYLE", output, "text, md, csv or json [text]");
  add_text_flag(command, "--html", "FILE", flags.html,
                "Also writes a page with pictures of what was measured");
  add_switch(command, "--json", flags.json, "The same as -o json");
  flags.given = [&command] { return given_flags(command); };
}

Result<std::vector<GivenFlag>> parse_bench_words(std::vector<std::string> words) {
  BenchFlags flags;
  return parse_words([&flags](CLI::App& parser) { add_bench_flags(parser, flags); }, std::move(words));
}

}  // namespace eider
