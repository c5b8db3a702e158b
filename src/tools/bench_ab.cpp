#include "tools/bench_ab.h"

#include <wordexp.h>

#include <algorithm>
#include <set>

#include "tools/subprocess.h"

namespace eider {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kCommandPrefix = "cmd:";
/// Flags of the comparison as a whole.
const std::set<std::string> kNotOfASide = {"--ab",   "--pairs",   "--output",  "--json",
                                           "--html", "--no-roof", "--cold-mib"};

/// Words as a shell makes them of `text`: quotes, ~ and variables, but no commands.
Result<std::vector<std::string>> split_words(const std::string& text) {
  wordexp_t expansion{};
  if (wordexp(text.c_str(), &expansion, WRDE_NOCMD) != 0)
    return error("quotes do not match, or a character such as | or ; is not quoted");
  std::vector<std::string> words(expansion.we_wordv, expansion.we_wordv + expansion.we_wordc);
  wordfree(&expansion);
  return words;
}

bool has(const std::vector<GivenFlag>& flags, const std::string& name) {
  return std::ranges::find(flags, name, &GivenFlag::name) != flags.end();
}

Result<std::vector<std::string>> side_command(const std::vector<GivenFlag>& common, const std::string& side) {
  if (side.starts_with(kCommandPrefix))
    return std::vector<std::string>{"/bin/sh", "-c", side.substr(kCommandPrefix.size())};
  EIDER_TRY(std::vector<std::string> words, split_words(side));
  EIDER_TRY(const std::vector<GivenFlag> own, parse_bench_words(std::move(words)));
  for (const std::string name :
       {"--machine", "--kernels", "--write", "--ab", "--pairs", "--compare", "--output", "--json"})
    if (has(own, name)) return error("{} is not for a side", name);
  const auto either_has = [&](const std::string& name) { return has(own, name) || has(common, name); };
  if (!either_has("--model") && !either_has("--synthetic"))
    return error("a side needs a model: -m or --synthetic");

  std::vector<std::string> process = {"/proc/self/exe", "bench"};
  const auto add = [&](const GivenFlag& flag) {
    process.insert(process.end(), flag.words.begin(), flag.words.end());
  };
  for (const GivenFlag& flag : common)
    if (!kNotOfASide.contains(flag.name) && !has(own, flag.name)) add(flag);
  std::ranges::for_each(own, add);
  if (!either_has("--repetitions")) process.emplace_back("--repetitions=3");
  process.emplace_back("--no-roof");  // it is measured here, between the runs
  process.emplace_back("--json");
  return process;
}

/// The last line of what a failed command says, which is where programs put the reason.
std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  text.erase(0, text.rfind('\n') + 1);
  constexpr std::size_t kMostBytes = 400;
  return text.size() > kMostBytes ? text.substr(0, kMostBytes) + "..." : text;
}

Result<std::vector<Figure>> run_side(const std::vector<std::string>& command, const std::string& side,
                                     const InterruptGuard& interrupt, const TimeLimit& limit) {
  EIDER_TRY(const ProcessResult result, run_process(command, interrupt, limit));
  if (result.exit_code != 0) {
    std::string reason = last_line(result.err.empty() ? result.out : result.err);
    if (reason.starts_with("error: ")) reason.erase(0, 7);
    return error("'{}' ended with exit code {}{}{}", side, result.exit_code, reason.empty() ? "" : ": ",
                 reason);
  }
  return parse_side_output(result.out, result.err).context(fmt::format("'{}'", side));
}

}  // namespace

Result<AbCommands> ab_commands(const BenchFlags& flags) {
  const std::vector<GivenFlag> common = flags.given();
  AbCommands commands{.sides = {flags.ab.front(), flags.ab.back()}};
  for (const auto& [side, command] :
       {std::pair(&commands.sides.a, &commands.a), std::pair(&commands.sides.b, &commands.b)}) {
    EIDER_TRY(*command, side_command(common, *side).context(fmt::format("--ab: '{}'", *side)));
  }
  return commands;
}

Result<AbReport> run_ab(const AbCommands& commands, int pairs, const std::function<double()>& read_roof,
                        const Terminal& terminal, const InterruptGuard& interrupt) {
  ProgressBar bar(terminal, "A/B");
  AbOptions options{.pairs = pairs, .read_roof = read_roof};
  options.progress = [&](std::int64_t done, std::int64_t total) {
    bar.update(done, total);
    return !interrupt.interrupted();
  };
  options.tell_time = [&](double seconds) {
    if (pairs == 1) return;
    bar.erase();
    terminal.note(
        fmt::format("{} pairs: at most {:.0f} s, about half of that where none are dropped", pairs, seconds));
  };
  const AbSides& sides = commands.sides;
  return measure_pairs(
      [&](const TimeLimit& limit) { return run_side(commands.a, sides.a, interrupt, limit); },
      [&](const TimeLimit& limit) { return run_side(commands.b, sides.b, interrupt, limit); }, options);
}

}  // namespace eider
