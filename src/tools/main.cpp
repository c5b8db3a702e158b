// The `eider` program: parses the command line, runs the chosen command, and turns its end into an exit code.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/machine.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/terminal.h"

namespace eider {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

std::string version_text() {
  return fmt::format("eider {}\ncompiler: {}\ninstruction sets of the cpu backend here: {}", EIDER_VERSION,
                     kCompiler, fmt::join(cpu_isas(detect_machine()), ", "));
}

/// One line for what is wrong with the command line, and where to look.
int report_usage(const CLI::App& program, const CLI::ParseError& problem, const Terminal& terminal) {
  const auto chosen = program.get_subcommands();
  std::string message = problem.what();
  if (chosen.empty()) {
    const std::vector<std::string> words = program.remaining();
    message =
        fmt::format("{}: run, chat, serve, tokenize, inspect, perplexity, bench, prepare or cache",
                    words.empty() ? "a command is needed" : fmt::format("'{}' is no command", words.front()));
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  terminal.error(fmt::format("{}; see eider{} --help", message, command));
  return kExitUsage;
}

int run_program(int argc, char** argv, const Terminal& terminal) {
  CLI::App program("eider runs large language models on this machine.\n", "eider");
  program.require_subcommand(1);
  program.formatter(make_help_formatter());
  program.set_version_flag("--version", version_text, "Version, compiler and instruction set");
  program.footer(
      "Examples:\n"
      "  eider run -m model.gguf -p \"Why is the sky blue?\"\n"
      "  eider chat -m model.gguf\n"
      "  eider serve -m model.gguf\n"
      "  eider inspect -m model.gguf -c 8192\n"
      "  eider bench -m model.gguf\n"
      "  eider run --help");

  Action action;
  add_run_command(program, action);
  add_chat_command(program, action);
  add_serve_command(program, action);
  add_inspect_command(program, action);
  add_perplexity_command(program, action);
  add_tokenize_command(program, action);
  add_bench_command(program, action);
  add_prepare_command(program, action);
  add_cache_command(program, action);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::transform(arguments.begin(), arguments.end(), arguments.begin(), spell_out_flag);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    program.parse(std::move(arguments));
  } catch (const CLI::Success& request) {  // --help, --version
    return program.exit(request);
  } catch (const CLI::ParseError& problem) {
    return report_usage(program, problem, terminal);
  }

  const Result<int> outcome = action(terminal);
  if (outcome.ok()) return *outcome;
  terminal.error(outcome.error().message());
  return kExitFailure;
}

}  // namespace
}  // namespace eider

int main(int argc, char** argv) {
  const eider::Terminal terminal = eider::Terminal::from_environment();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is then an error of write_stdout()
  std::signal(SIGXFSZ, SIG_IGN);  // and a file that may grow no further one of File::write()
  try {
    return eider::run_program(argc, argv, terminal);
  } catch (const std::bad_alloc&) {
    terminal.error("out of memory");
  } catch (const std::exception& problem) {
    terminal.error(problem.what());
  }
  return eider::kExitFailure;
}
