#include "weights/json.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/mapped_file.h"
#include "weights/printable.h"

namespace eider {
namespace {

using nlohmann::json;

/// Watches the parser go by and remembers the first thing that it must not accept.
class Watch {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    constexpr int kMostLevels = 64;
    if (!refusal_.empty()) return false;
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMostLevels) refusal_ = fmt::format("more than {} levels of nesting", kMostLevels);
      if (event == json::parse_event_t::object_start) keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) refusal_ = fmt::format("key {} appears twice", printable(key));
    }
    return refusal_.empty();  // false drops the value, so that a refused text builds nothing more
  }

  const std::string& refusal() const { return refusal_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string refusal_;
};

}  // namespace

std::string json_error_text(std::string_view what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
  const std::size_t prefix = what.find("] ");
  return std::string(prefix == std::string_view::npos ? what : what.substr(prefix + 2));
}

Result<json> parse_json(std::string_view text) {
  Watch watch;
  try {
    json value = json::parse(text, [&watch](int depth, json::parse_event_t event, json& parsed) {
      return watch(depth, event, parsed);
    });
    if (!watch.refusal().empty()) return Error(watch.refusal());
    return value;
  } catch (const json::exception& failure) {
    return Error(json_error_text(failure.what()));
  }
}

Result<json> read_json_file(const std::string& path, std::size_t most_bytes) {
  EIDER_TRY(const auto file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > most_bytes)
    return error("{}: {} bytes; at most {} are read as JSON", path, bytes.size(), most_bytes);
  return parse_json(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()))
      .context(path);
}

Result<json> read_optional_object(const std::string& path, std::size_t most_bytes) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return json::object();
  EIDER_TRY(json object, read_json_file(path, most_bytes));
  if (!object.is_object()) return error("{}: expected an object", path);
  return object;
}

}  // namespace eider
