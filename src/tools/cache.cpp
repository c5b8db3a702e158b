// `eider cache`: what the weight cache holds, whether it is sound, and how it gets smaller.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/format_bytes.h"
#include "text/json_text.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/interrupt.h"
#include "tools/loading.h"
#include "tools/local_time.h"
#include "weights/prepared_file.h"
#include "weights/weight_cache.h"

namespace eider {
namespace {

struct CacheCommandFlags {
  CacheFlags cache;
  std::vector<std::string> names;
  bool all = false;
  bool json = false;
};

std::string file_name(const CacheEntry& entry) {
  return std::filesystem::path(entry.path).filename().string();
}

/// Those that `names` mean: the begin of a file's name, or the path of a model. A name that means none is an
/// error.
Result<std::vector<CacheEntry>> choose(const std::vector<CacheEntry>& entries,
                                       const std::vector<std::string>& names) {
  std::vector<CacheEntry> chosen;
  for (const std::string& name : names) {
    std::error_code ignored;
    const std::string source = std::filesystem::weakly_canonical(name, ignored).string();
    const auto meant = [&](const CacheEntry& entry) {
      return file_name(entry).starts_with(name) || entry.path == name || entry.source == source;
    };
    if (name.empty() || std::ranges::none_of(entries, meant))
      return error("'{}': neither a file of the cache nor a model that it has", name);
    std::ranges::copy_if(entries, std::back_inserter(chosen), meant);
  }
  return chosen;
}

std::string state_of(const CacheEntry& entry) {
  if (!entry.problem.empty()) return "damaged";
  if (entry.finished == entry.sections) return "finished";
  return fmt::format("{} of {}", entry.finished, entry.sections);
}

std::string to_json(const WeightCache& cache, const std::vector<CacheEntry>& entries) {
  auto files = nlohmann::ordered_json::array();
  for (const CacheEntry& entry : entries)
    files.push_back({{"path", entry.path},
                     {"model", entry.source},
                     {"bytes", entry.bytes},
                     {"last_used", entry.last_used},
                     {"finished", entry.finished},
                     {"sections", entry.sections},
                     {"problem", entry.problem}});
  const nlohmann::ordered_json object = {{"directory", cache.directory()}, {"files", std::move(files)}};
  return to_json_text(object, 2) + "\n";
}

Result<int> list(const CacheCommandFlags& flags) {
  EIDER_TRY(const WeightCache cache, open_cache(flags.cache));
  const std::vector<CacheEntry> entries = cache.list();
  if (flags.json) {
    EIDER_TRY_STATUS(write_stdout(to_json(cache, entries)));
    return kExitSuccess;
  }
  std::string text;
  std::int64_t total = 0;
  for (const CacheEntry& entry : entries) {
    total += entry.bytes;
    text += fmt::format("{}  {:>10}  {:<9}  used {}  {}\n", file_name(entry).substr(0, 12),
                        format_bytes(entry.bytes), state_of(entry), local_time(entry.last_used),
                        entry.problem.empty() ? entry.source : entry.problem);
  }
  text += fmt::format("{}: {} files, {}\n", cache.directory(), entries.size(), format_bytes(total));
  EIDER_TRY_STATUS(write_stdout(text));
  return kExitSuccess;
}

/// Reads every byte of a file. What is damaged is marked, so that the next start prepares it anew. Returns
/// what is wrong; empty: nothing.
Result<std::string> verify(const CacheEntry& entry, ProgressBar& bar, const InterruptGuard& interrupt) {
  if (!entry.problem.empty()) return entry.problem;
  EIDER_TRY(const PreparedFile file, PreparedFile::open(entry.path));
  std::string problems;
  for (std::size_t i = 0; i < file.index().sections().size(); ++i) {
    bool right = file.state(i) != PreparedFile::State::kDamaged;
    if (file.state(i) == PreparedFile::State::kFinished) {
      EIDER_TRY(right, file.check_on_disk(i, [&](std::int64_t done, std::int64_t total) {
        bar.update(done, total);
        return !interrupt.interrupted();
      }));
    }
    if (right) continue;
    problems += (problems.empty() ? "" : ", ") + file.index().sections()[i].name();
    EIDER_TRY(PreparedFile writable, PreparedFile::open(entry.path, File::Mode::kUpdate));
    EIDER_TRY_STATUS(writable.discard(i));
  }
  return problems.empty() ? problems : fmt::format("{}: damaged: {}", entry.path, problems);
}

Result<int> verify_all(const CacheCommandFlags& flags, const Terminal& terminal) {
  const InterruptGuard interrupt;
  EIDER_TRY(const WeightCache cache, open_cache(flags.cache));
  std::vector<CacheEntry> entries = cache.list();
  if (!flags.names.empty()) {
    EIDER_TRY(entries, choose(entries, flags.names));
  }
  std::size_t damaged = 0;
  for (const CacheEntry& entry : entries) {
    ProgressBar bar(terminal, file_name(entry).substr(0, 12), ProgressBar::Unit::kBytes);
    const Result<std::string> problem = verify(entry, bar, interrupt);
    bar.erase();
    if (!problem.ok() && interrupt.interrupted()) return kExitInterrupted;
    if (!problem.ok()) return problem.error();
    if (!problem->empty()) ++damaged;
    EIDER_TRY_STATUS(write_stdout(problem->empty() ? fmt::format("{}: {}\n", entry.path, state_of(entry))
                                                   : *problem + "\n"));
  }
  if (damaged > 0)
    return error("{} of {} files damaged; the next start of their models prepares anew what is wrong",
                 damaged, entries.size());
  return kExitSuccess;
}

Result<int> remove(const CacheCommandFlags& flags) {
  EIDER_TRY(const WeightCache cache, open_cache(flags.cache));
  std::vector<CacheEntry> entries = cache.list();
  if (!flags.all) {
    EIDER_TRY(entries, choose(entries, flags.names));
  }
  for (const CacheEntry& entry : entries) {
    if (!remove_prepared(entry.path))
      return error("{}: cannot be removed: another process is writing it, or it is not yours", entry.path);
    EIDER_TRY_STATUS(write_stdout(fmt::format("removed {}, {}\n", entry.path, format_bytes(entry.bytes))));
  }
  return kExitSuccess;
}

constexpr const char* kCacheExamples = R"(Examples:
  eider cache ls
  eider cache verify
  eider cache rm model.gguf)";

void add_names(CLI::App& command, CacheCommandFlags& flags) {
  add_words(command, "names", "NAME", flags.names,
            "The begin of a file's name as ls shows it, or a model's path");
}

}  // namespace

void add_cache_command(CLI::App& program, Action& action) {
  CLI::App& command = add_command_group(
      program, "cache", "Lists, checks and removes prepared weights that were kept", kCacheExamples);
  const auto flags = std::make_shared<CacheCommandFlags>();
  CLI::App& ls =
      add_command(command, "ls", "What is kept, the model used last first", "", [flags, &action]() -> Status {
        action = [flags](const Terminal&) { return list(*flags); };
        return {};
      });
  add_cache_directory_flag(ls, flags->cache);
  add_switch(ls, "--json", flags->json, "Prints one JSON object; sizes are bytes, times seconds since 1970");

  CLI::App& verify =
      add_command(command, "verify", "Reads every byte and checks it", "", [flags, &action]() -> Status {
        action = [flags](const Terminal& terminal) { return verify_all(*flags, terminal); };
        return {};
      });
  add_names(verify, *flags);
  add_cache_directory_flag(verify, flags->cache);

  CLI::App& rm = add_command(command, "rm", "Removes files", "", [flags, &action]() -> Status {
    if (flags->all == !flags->names.empty()) return error("rm: either names or --all");
    action = [flags](const Terminal&) { return remove(*flags); };
    return {};
  });
  add_names(rm, *flags);
  add_cache_directory_flag(rm, flags->cache);
  add_switch(rm, "--all", flags->all, "All of them");
}

}  // namespace eider
