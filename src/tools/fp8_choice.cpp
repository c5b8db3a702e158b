#include "tools/fp8_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fp8_timing.h"
#include "base/thread_pool.h"
#include "bench/host_info.h"
#include "tools/loading.h"
#include "weights/new_file.h"
#include "weights/random_weights.h"

namespace eider {
namespace {

/// What was measured on the machines that use a directory: a line for each CPU, instruction set and version
/// of the packed layout, "CPU <tab> ISA <tab> VERSION <tab> FORM".
class KeptChoices {
 public:
  KeptChoices(const std::string& directory, std::string key)
      : path_((std::filesystem::path(directory) / "fp8-as.txt").string()), key_(std::move(key)) {}

  std::optional<Fp8Form> find() const {
    const std::vector<std::string> kept = lines();
    for (const Fp8Form form : {Fp8Form::kFp8, Fp8Form::kFp9})
      if (std::ranges::find(kept, line_of(form)) != kept.end()) return form;
    return std::nullopt;
  }
  Status keep(Fp8Form form) const {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    std::string text;
    for (const std::string& line : lines()) text += line + "\n";
    EIDER_TRY(NewFile file, NewFile::create(path_));
    EIDER_TRY_STATUS(file.write(text + line_of(form) + "\n"));
    return file.commit();
  }

 private:
  static constexpr std::size_t kMostLines = 100, kLongestLine = 500;

  std::string line_of(Fp8Form form) const { return key_ + "\t" + fp8_form_name(form); }
  /// What may be such lines.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; lines.size() < kMostLines && std::getline(file, line);)
      if (!line.empty() && line.size() <= kLongestLine) lines.push_back(line);
    return lines;
  }

  std::string path_, key_;
};

/// Of weights in each form: more than caches hold, as far as that takes a moment only.
std::size_t measured_bytes(const Machine& machine, std::size_t cache_bytes) {
  constexpr std::size_t kLeast = std::size_t{64} << 20, kMost = std::size_t{256} << 20;
  return std::min(std::clamp(2 * cache_bytes, kLeast, kMost),
                  static_cast<std::size_t>(machine.available_memory) / 8);
}

}  // namespace

Result<Fp8Choice> choose_fp8_form(const EngineFlags& flags, const Machine& machine, const std::string& isa) {
  if (flags.fp8_as) return Fp8Choice{*flags.fp8_as, "--fp8-as says so"};
  const bench::HostInfo host = bench::describe_host(machine);
  const std::string directory = flags.cache.off ? "" : cache_directory(flags.cache);
  const KeptChoices kept(directory,
                         fmt::format("{}\t{}\t{}", host.cpu, isa, cpu_packing_version(Fp8Form::kFp8)));
  if (!directory.empty())
    if (const std::optional<Fp8Form> form = kept.find())
      return Fp8Choice{*form, "measured on such a machine before"};
  // With all cores, as most decode, whatever -t says this time.
  ThreadPool pool(machine.default_threads(), machine.cores_for(machine.default_threads()));
  std::vector<std::byte> codes(kFp8TimingCodes);
  fill_random_weights(Format::kFP8_E4M3, 1, kFp8TimingCodes, codes.data(), pool);
  EIDER_TRY(const Fp8Form form,
            measure_faster_fp8_form(machine, isa, pool, measured_bytes(machine, host.l3_bytes), codes));
  if (!directory.empty()) static_cast<void>(kept.keep(form));  // else it is measured again next time
  return Fp8Choice{form, "measured just now"};
}

}  // namespace eider
