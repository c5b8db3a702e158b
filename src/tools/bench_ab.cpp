#include "tools/bench_ab.h"

#include <fmt/ranges.h>
#include <wordexp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <set>

#include "tools/subprocess.h"

namespace eider {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kCommandPrefix = "cmd:";
/// Flags of the comparison as a whole.
const std::set<std::string> kNotOfASide = {"--ab",   "--pairs",   "--output",  "--json",
                                           "--html", "--no-roof", "--cold-mib"};

[[noreturn]] void refuse(const std::string& message) {
  throw CLI::ValidationError("--ab", message);
}

/// Words as a shell makes them of `text`: quotes, ~ and variables, but no commands.
std::vector<std::string> split_words(const std::string& text) {
  wordexp_t expansion{};
  if (wordexp(text.c_str(), &expansion, WRDE_NOCMD) != 0)
    refuse(fmt::format("'{}': quotes do not match, or a character such as | or ; is not quoted", text));
  std::vector<std::string> words(expansion.we_wordv, expansion.we_wordv + expansion.we_wordc);
  wordfree(&expansion);
  return words;
}

/// The flags that `command` was given and `keep` wants, as words of a command line.
template <class Keep>
std::vector<std::string> given_flags(const CLI::App& command, Keep keep) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (!keep(name)) continue;
    if (option->get_items_expected_max() == 0)
      words.push_back(name);
    else
      for (const std::string& value : option->results()) words.push_back(name + "=" + value);
  }
  return words;
}

std::vector<std::string> side_command(const CLI::App& command, const std::string& side) {
  if (side.starts_with(kCommandPrefix)) return {"/bin/sh", "-c", side.substr(kCommandPrefix.size())};
  CLI::App parser("bench");
  BenchFlags flags;
  add_bench_flags(parser, flags);
  std::vector<std::string> words = split_words(side);
  std::ranges::transform(words, words.begin(), spell_out_flag);
  std::ranges::reverse(words);  // CLI11 takes them from the back
  try {
    parser.parse(words);
  } catch (const CLI::ParseError& problem) {
    refuse(fmt::format("'{}': {}", side, problem.what()));
  }
  const auto given = [](const CLI::App& app, const std::string& name) {
    return app.get_option(name)->count() > 0;
  };
  for (const std::string name :
       {"--machine", "--kernels", "--write", "--ab", "--pairs", "--compare", "--output", "--json"})
    if (given(parser, name)) refuse(fmt::format("'{}': {} is not for a side", side, name));
  const auto given_by_either = [&](const std::string& name) {
    return given(parser, name) || given(command, name);
  };
  if (!given_by_either("--model") && !given_by_either("--synthetic"))
    refuse(fmt::format("'{}': a side needs a model: -m or --synthetic", side));

  std::vector<std::string> process = {"/proc/self/exe", "bench"};
  const auto add = [&](const std::vector<std::string>& more) {
    process.insert(process.end(), more.begin(), more.end());
  };
  add(given_flags(
      command, [&](const std::string& name) { return !kNotOfASide.contains(name) && !given(parser, name); }));
  add(given_flags(parser, [](const std::string&) { return true; }));
  if (!given_by_either("--repetitions")) process.emplace_back("--repetitions=3");
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
                                     const InterruptGuard& interrupt) {
  EIDER_TRY(const ProcessResult result, run_process(command, interrupt));
  if (result.exit_code != 0) {
    std::string reason = last_line(result.err.empty() ? result.out : result.err);
    if (reason.starts_with("error: ")) reason.erase(0, 7);
    return error("'{}' ended with exit code {}{}{}", side, result.exit_code, reason.empty() ? "" : ": ",
                 reason);
  }
  return parse_side_output(result.out, result.err).context(fmt::format("'{}'", side));
}

}  // namespace

AbCommands ab_commands(const CLI::App& command, const std::vector<std::string>& sides) {
  return {{sides.front(), sides.back()},
          side_command(command, sides.front()),
          side_command(command, sides.back())};
}

Result<AbReport> run_ab(const AbCommands& commands, int pairs, const std::function<double()>& read_roof,
                        const Terminal& terminal, const InterruptGuard& interrupt) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  ProgressBar bar(terminal, "A/B");
  int sides_run = 0;
  const Progress progress = [&](std::int64_t done, std::int64_t total) {
    if (++sides_run == 2 && pairs > 1) {
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      bar.erase();
      terminal.note(fmt::format("{} pairs take about {:.0f} s, at most twice that where pairs are dropped",
                                pairs, seconds * pairs));
    }
    bar.update(done, total);
    return !interrupt.interrupted();
  };
  return measure_pairs([&] { return run_side(commands.a, commands.sides.a, interrupt); },
                       [&] { return run_side(commands.b, commands.sides.b, interrupt); }, pairs, read_roof,
                       progress);
}

}  // namespace eider
