#include "weights/json.h"

#include <filesystem>
#include <limits>
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
  /// Most keys of one object, and of all.
  Watch(std::size_t most_keys, std::size_t most_keys_in_all)
      : most_keys_(most_keys), keys_left_(most_keys_in_all) {}

  template <class Json>
  bool operator()(int depth, json::parse_event_t event, const Json& value) {
    constexpr int kMostLevels = 64;
    if (!refusal_.empty()) return false;
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= kMostLevels) refusal_ = fmt::format("more than {} levels of nesting", kMostLevels);
      if (event == json::parse_event_t::object_start) keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.template get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) refusal_ = fmt::format("key {} appears twice", printable(key));
      if (keys_.back().size() > most_keys_)
        refusal_ = fmt::format("an object has more than {} keys", most_keys_);
      if (keys_left_-- == 0) refusal_ = "too many keys";
    }
    return refusal_.empty();  // false drops the value, so that a refused text builds nothing more
  }

  const std::string& refusal() const { return refusal_; }

 private:
  std::size_t most_keys_, keys_left_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string refusal_;
};

template <class Json>
Result<Json> parse_watched(std::string_view text, Watch watch) {
  try {
    Json value = Json::parse(text, [&watch](int depth, json::parse_event_t event, Json& parsed) {
      return watch(depth, event, parsed);
    });
    if (!watch.refusal().empty()) return Error(watch.refusal());
    return value;
  } catch (const json::exception& failure) {
    return Error(json_error_text(failure.what()));
  }
}

}  // namespace

std::string json_error_text(std::string_view what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
  const std::size_t prefix = what.find("] ");
  return std::string(prefix == std::string_view::npos ? what : what.substr(prefix + 2));
}

Result<json> parse_json(std::string_view text) {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  return parse_watched<json>(text, Watch(kAny, kAny));
}

Result<nlohmann::ordered_json> parse_json_in_order(std::string_view text) {
  return parse_watched<nlohmann::ordered_json>(text, Watch(512, std::size_t{1} << 20));
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
