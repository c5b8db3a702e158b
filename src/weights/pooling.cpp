#include "weights/pooling.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "weights/config.h"
#include "weights/json.h"
#include "weights/printable.h"

namespace eider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostPoolingBytes = std::size_t{1} << 20;
constexpr const char* kModules = "modules.json";

struct PoolingNames {
  Pooling pooling;
  std::string_view name;
  std::string_view mode;  // sentence-transformers' pooling_mode
  std::string_view flag;  // its older form: true or false
};

constexpr PoolingNames kPoolings[] = {
    {Pooling::kLast, "last", "lasttoken", "pooling_mode_lasttoken"},
    {Pooling::kMean, "mean", "mean", "pooling_mode_mean_tokens"},
    {Pooling::kCls, "cls", "cls", "pooling_mode_cls_token"},
    {Pooling::kMax, "max", "max", "pooling_mode_max_tokens"},
    {Pooling::kMeanSqrtLen, "mean_sqrt_len", "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
    {Pooling::kWeightedMean, "weighted_mean", "weightedmean", "pooling_mode_weightedmean_tokens"},
};

// Clients read this, so it names no directory of the server's.
PoolingConfig refuse_pooling(std::string why) {
  return {.refusal = std::move(why)};
}

/// The names of the poolings that a file asks for, each as it stands there.
Result<std::vector<std::string>> named_modes(const Config& config) {
  constexpr const char* kMode = "pooling_mode";
  if (config.has(kMode)) {
    if (config.json()[kMode].is_array()) return config.strings(kMode);
    EIDER_TRY(std::string mode, config.string(kMode));
    return std::vector<std::string>{std::move(mode)};
  }
  std::vector<std::string> flags;
  for (const auto& [key, value] : config.json().items()) {
    if (!key.starts_with("pooling_mode_")) continue;
    EIDER_TRY(const bool is_set, config.boolean_or(key, false));
    if (is_set) flags.push_back(key);
  }
  // The only one that is on unless the file says otherwise.
  constexpr const char* kMean = "pooling_mode_mean_tokens";
  if (!config.json().contains(kMean)) flags.emplace_back(kMean);
  return flags;
}

/// `name`: of the file in `directory`.
Result<PoolingConfig> read_pooling_config(const fs::path& directory, const fs::path& name) {
  EIDER_TRY(json object, read_optional_object((directory / name).string(), kMostPoolingBytes));
  const Config config(std::move(object), (directory / name).string());
  EIDER_TRY(const std::vector<std::string> modes, named_modes(config));
  if (modes.empty()) return PoolingConfig();
  if (modes.size() > 1)
    return refuse_pooling(fmt::format("{} names several poolings at once, {}, of which one is supported",
                                      name.string(), printable(fmt::format("{}", fmt::join(modes, ", ")))));
  const auto named = std::ranges::find_if(
      kPoolings, [&](const PoolingNames& names) { return names.mode == modes[0] || names.flag == modes[0]; });
  if (named == std::end(kPoolings))
    return refuse_pooling(
        fmt::format("{}: the pooling {} is not supported", name.string(), printable(modes[0])));
  return PoolingConfig{.pooling = named->pooling};
}

/// One entry of modules.json: "sentence_transformers.models.Pooling" in the folder "1_Pooling".
struct Module {
  std::string type;
  std::string path;
};

Result<std::vector<Module>> read_modules(const std::string& path) {
  EIDER_TRY(const json list, read_json_file(path, kMostPoolingBytes));
  if (!list.is_array()) return error("{}: expected an array of modules", path);
  std::vector<Module> modules;
  for (const json& entry : list) {
    const std::string origin = fmt::format("{}: module {}", path, modules.size());
    if (!entry.is_object()) return error("{}: expected an object", origin);
    const Config config(entry, origin);
    EIDER_TRY(std::string type, config.string("type"));
    EIDER_TRY(std::string folder, config.string_or("path", ""));
    modules.push_back({std::move(type), std::move(folder)});
  }
  return modules;
}

/// The list of modules must come to a transformer, one pooling of its states, and a vector of length 1.
Result<PoolingConfig> follow_modules(const fs::path& directory) {
  const std::string list = (directory / kModules).string();
  EIDER_TRY(const std::vector<Module> modules, read_modules(list));
  constexpr std::string_view kLibrary = "sentence_transformers.";
  constexpr std::string_view kOrder[] = {"Transformer", "Pooling", "Normalize"};
  std::span<const std::string_view> may_follow = kOrder;
  std::optional<fs::path> folder;
  for (const Module& module : modules) {
    const std::string_view type = module.type;
    const auto found = std::ranges::find(may_follow, type.substr(type.rfind('.') + 1));
    if (!type.starts_with(kLibrary) || found == may_follow.end())
      return refuse_pooling(
          fmt::format("{}: the module {} is not supported there", kModules, printable(type)));
    if (*found == "Pooling") folder = module.path;
    may_follow = may_follow.subspan(static_cast<std::size_t>(found - may_follow.begin()) + 1);
  }
  if (!folder) return PoolingConfig();
  // Whatever the list says, nothing outside the directory is read.
  if (folder->empty() || folder->has_parent_path() || *folder == "." || *folder == "..")
    return error("{}: {} is not the name of a folder beside it", list, printable(folder->string()));
  const fs::path name = *folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(directory / name, ignored))
    return refuse_pooling(
        fmt::format("{} names a pooling whose file is missing: {}", kModules, printable(name.string())));
  return read_pooling_config(directory, name);
}

}  // namespace

std::string_view pooling_name(Pooling pooling) {
  return std::ranges::find(kPoolings, pooling, &PoolingNames::pooling)->name;
}

Result<PoolingConfig> read_pooling(const std::string& directory) {
  const fs::path name = fs::path("1_Pooling") / "config.json";
  std::error_code ignored;
  if (fs::exists(fs::path(directory) / kModules, ignored)) return follow_modules(directory);
  if (fs::exists(directory / name, ignored)) return read_pooling_config(directory, name);
  return PoolingConfig();
}

Result<PoolingConfig> gguf_pooling(const GgufFile& file, std::string_view architecture) {
  const std::string key = fmt::format("{}.pooling_type", architecture);
  EIDER_TRY(const auto type, file.integer(key));
  switch (type.value_or(0)) {
    case 0:  // none
    case 3:
      return PoolingConfig{.pooling = Pooling::kLast};
    case 1:
      return PoolingConfig{.pooling = Pooling::kMean};
    case 2:
      return PoolingConfig{.pooling = Pooling::kCls};
    case 4:
      return refuse_pooling(
          fmt::format("metadata key {}: 4 (rank) is not supported: its model scores texts", key));
    default:
      return refuse_pooling(fmt::format("metadata key {}: {} is not supported", key, *type));
  }
}

}  // namespace eider
