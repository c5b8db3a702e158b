#include "weights/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "weights/json.h"
#include "weights/printable.h"

namespace eider {
namespace {

/// Events of nlohmann's parser, in the schema of the header: the state says what the next event may be. Every
/// event returns whether to go on.
class HeaderEvents {
 public:
  std::map<std::string, SafetensorsHeaderEntry, std::less<>> entries;
  std::string failure;

  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(std::int64_t) { return refuse("a negative number"); }
  bool number_float(double, const std::string&) { return refuse("a fraction"); }
  bool binary(const std::vector<std::uint8_t>&) { return refuse("binary data"); }

  bool number_unsigned(std::uint64_t number) {
    if (state_ == State::kInShape)
      entry_.shape.push_back(number);
    else if (state_ == State::kInOffsets)
      entry_.data_offsets.push_back(number);
    else
      return refuse("a number");
    return true;
  }

  bool string(std::string& text) {
    if (state_ == State::kInMetadata) return true;
    if (state_ != State::kDtype) return refuse("a string");
    entry_.dtype = std::move(text);
    state_ = State::kInEntry;
    return true;
  }

  bool start_object(std::size_t) {
    switch (state_) {
      case State::kStart:
        state_ = State::kInHeader;
        return true;
      case State::kMetadata:
        state_ = State::kInMetadata;
        return true;
      case State::kEntry:
        state_ = State::kInEntry;
        entry_ = {};
        has_dtype_ = has_shape_ = has_offsets_ = false;
        return true;
      default:
        return refuse("an object");
    }
  }

  bool end_object() {
    if (state_ == State::kInEntry) {
      if (!has_dtype_ || !has_shape_ || !has_offsets_)
        return fail("tensor {}: it needs dtype, shape and data_offsets", printable(name_));
      entries.emplace(name_, std::move(entry_));
    }
    state_ = State::kInHeader;  // the end of the header itself is followed by no event
    return true;
  }

  bool key(std::string& key) {
    if (state_ == State::kInMetadata) return true;
    if (state_ == State::kInEntry) return entry_key(key);
    name_ = std::move(key);
    if (name_ == "__metadata__") {
      if (std::exchange(has_metadata_, true)) return fail("__metadata__ appears twice");
      state_ = State::kMetadata;
      return true;
    }
    if (entries.contains(name_)) return fail("tensor {} appears twice", printable(name_));
    state_ = State::kEntry;
    return true;
  }

  bool start_array(std::size_t) {
    if (state_ == State::kShape)
      state_ = State::kInShape;
    else if (state_ == State::kOffsets)
      state_ = State::kInOffsets;
    else
      return refuse("an array");
    return true;
  }

  bool end_array() {
    state_ = State::kInEntry;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& problem) {
    failure = json_error_text(problem.what());
    return false;
  }

 private:
  /// A state named after a key waits for that key's value; kIn... is inside it.
  enum class State {
    kStart,
    kInHeader,
    kMetadata,
    kInMetadata,
    kEntry,
    kInEntry,
    kDtype,
    kShape,
    kInShape,
    kOffsets,
    kInOffsets,
  };

  bool entry_key(const std::string& key) {
    const auto seen_before = [&](bool& seen, State next) {
      state_ = next;
      return std::exchange(seen, true);
    };
    bool twice = false;
    if (key == "dtype")
      twice = seen_before(has_dtype_, State::kDtype);
    else if (key == "shape")
      twice = seen_before(has_shape_, State::kShape);
    else if (key == "data_offsets")
      twice = seen_before(has_offsets_, State::kOffsets);
    else
      return fail("tensor {}: key {} is unknown", printable(name_), printable(key));
    return !twice || fail("tensor {}: {} appears twice", printable(name_), key);
  }

  bool refuse(std::string_view found) {
    if (state_ == State::kStart) return fail("expected an object, found {}", found);
    return fail("{}: {} where the format has none", printable(name_), found);
  }

  template <class... Args>
  bool fail(fmt::format_string<Args...> format, Args&&... args) {
    failure = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  State state_ = State::kStart;
  std::string name_;
  SafetensorsHeaderEntry entry_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  bool has_metadata_ = false;
};

}  // namespace

Result<std::map<std::string, SafetensorsHeaderEntry, std::less<>>> read_safetensors_header(
    std::string_view json) {
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(json, &events)) return Error(std::move(events.failure));
  return std::move(events.entries);
}

}  // namespace eider
