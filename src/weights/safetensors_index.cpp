#include "weights/safetensors_index.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "weights/json.h"
#include "weights/printable.h"

namespace eider {
namespace {

namespace fs = std::filesystem;

/// A name, not a path: an index must not lead out of its directory.
bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace

Result<SafetensorsIndex> read_safetensors_index(const std::string& path) {
  constexpr std::size_t kMostIndexBytes = std::size_t{64} << 20;
  EIDER_TRY(const auto json, read_json_file(path, kMostIndexBytes));
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (weight_map == json.end() || !weight_map->is_object()) return error("{}: weight_map is missing", path);

  SafetensorsIndex index{.path = path};
  const fs::path directory = fs::path(path).parent_path();
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !is_file_name(file.get_ref<const std::string&>()))
      return error("{}: tensor {}: not the name of a file in the same directory", path, printable(tensor));
    const auto& name = file.get_ref<const std::string&>();
    names.insert(name);
    index.file_of.emplace(tensor, (directory / name).string());
  }
  if (names.empty()) return error("{}: weight_map names no tensors", path);
  std::string missing;
  for (const std::string& name : names) {
    index.files.push_back((directory / name).string());
    std::error_code ignored;
    if (!fs::exists(index.files.back(), ignored)) missing += (missing.empty() ? "" : ", ") + printable(name);
  }
  if (!missing.empty()) return error("{}: files that it names are missing: {}", path, missing);
  return index;
}

Status check_index(const SafetensorsIndex& index, const std::string& name, const SafetensorsFile& file) {
  for (const auto& [tensor, entry] : file.entries()) {
    const auto listed = index.file_of.find(tensor);
    if (listed != index.file_of.end() && listed->second != name)
      return error("{}: tensor {} is said to be in {}, but is in {}", index.path, printable(tensor),
                   printable(fs::path(listed->second).filename().string()),
                   printable(fs::path(name).filename().string()));
  }
  return {};
}

}  // namespace eider
