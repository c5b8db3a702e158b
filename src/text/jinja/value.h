// Value: what a template computes with, with the semantics of the Python objects that Jinja2 would hold.
// Everything but a namespace is immutable (chat templates run in Jinja2's immutable sandbox), so values share
// their storage and cannot form cycles.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/budget.h"

namespace eider::jinja {

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct LoopState;
struct Callable;
struct For;
struct Scope;

/// A name, attribute or item that does not exist. It prints as nothing, is false, and most uses of it fail
/// with `reason`.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

struct None {};

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Data = std::variant<Undefined, None, bool, std::int64_t, double, Text,
                            std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, Namespace*,
                            std::shared_ptr<LoopState>, std::shared_ptr<const Callable>>;

  Value() : data_(Undefined{}) {}
  Value(None none) : data_(none) {}            // NOLINT(google-explicit-constructor)
  Value(bool value) : data_(value) {}          // NOLINT(google-explicit-constructor)
  Value(std::int64_t value) : data_(value) {}  // NOLINT(google-explicit-constructor)
  Value(double value) : data_(value) {}        // NOLINT(google-explicit-constructor)
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT
  Value(std::string_view text) : Value(std::string(text)) {}                                // NOLINT
  Value(const char* text) : Value(std::string(text)) {}                                     // NOLINT
  Value(Sequence sequence);                                           // NOLINT(google-explicit-constructor)
  Value(Dict dict);                                                   // NOLINT(google-explicit-constructor)
  Value(Callable callable);                                           // NOLINT(google-explicit-constructor)
  Value(Namespace* space) : data_(space) {}                           // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<LoopState> loop) : data_(std::move(loop)) {}  // NOLINT(google-explicit-constructor)

  static Value undefined(std::string reason) {
    Value value;
    value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
    return value;
  }

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }

  /// Null where the value is of another type.
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  const double* floating() const { return std::get_if<double>(&data_); }
  const std::string* string() const { return pointee<Text>(); }
  const Sequence* sequence() const { return pointee<std::shared_ptr<const Sequence>>(); }
  const Dict* dict() const { return pointee<std::shared_ptr<const Dict>>(); }
  Namespace* space() const {
    const auto* found = std::get_if<Namespace*>(&data_);
    return found != nullptr ? *found : nullptr;
  }
  LoopState* loop() const { return pointee<std::shared_ptr<LoopState>>(); }
  const Callable* callable() const { return pointee<std::shared_ptr<const Callable>>(); }

  const Data& data() const { return data_; }

 private:
  template <class Pointer>
  typename Pointer::element_type* pointee() const {
    const Pointer* found = std::get_if<Pointer>(&data_);
    return found != nullptr ? found->get() : nullptr;
  }

  Data data_;
};

struct Sequence {
  enum class Kind : std::uint8_t {
    kList,
    kTuple,
    kGenerator,  ///< what filters like map give: iterable, but without length, items or JSON
  };

  Sequence(Kind kind_, std::vector<Value> items_);  ///< throws Failure where values nest too deep

  Kind kind;
  std::vector<Value> items;
  int depth = 1;  ///< 1 + that of the deepest item
};

/// In insertion order.
struct Dict {
  using Entry = std::pair<Value, Value>;

  explicit Dict(
      std::vector<Entry> given);  ///< throws Failure where values nest too deep, or for keys without a hash

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

  std::vector<Entry> entries;  ///< of equal keys the last value, at the first one's place
  int depth = 1;
};

/// namespace(...): the one thing that a template can change. Owned by the rendering.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;
};

/// `loop` inside a for.
struct LoopState {
  std::shared_ptr<const Sequence> sequence;
  int depth = 1;  ///< of a recursive loop
  const For* recursive =
      nullptr;  ///< what loop(items) runs again, in `scope`; null where it is not recursive
  Scope* scope = nullptr;
  std::size_t index = 0;
  Namespace* changed = nullptr;  ///< what loop.changed() remembers; the loop itself may be part of it
};

Value make_list(std::vector<Value> items);
Value make_tuple(std::vector<Value> items);
Value make_generator(std::vector<Value> items);

/// type(value).__name__
std::string_view type_name(const Value& value);
bool is_true(const Value& value);

// What visits nested values is charged to the budget: shared lists of lists are exponential in their depth.

/// a == b; 1 == 1.0 == True.
bool equals(const Value& a, const Value& b, Budget& budget);
/// a < b; throws Failure for types that have no order.
bool less(const Value& a, const Value& b, Budget& budget);
/// str(value)
std::string to_text(const Value& value, Budget& budget);
/// repr(value)
std::string to_repr(const Value& value, Budget& budget);

/// Throws Failure where `json` nests too deep.
Value from_json(const nlohmann::ordered_json& json);

/// JSON as json.dumps(ensure_ascii=False) writes it.
struct JsonStyle {
  std::string indent;  ///< of one level; empty: all on one line
  bool multi_line = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace eider::jinja
