// What Interpreter finds in values: attributes, items, elements.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

// What Jinja2's immutable sandbox refuses, because it would change the caller's values.
constexpr std::array<std::string_view, 8> kListMutators = {"append", "clear", "pop",    "reverse",
                                                           "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictMutators = {"clear", "pop", "popitem", "setdefault", "update"};

bool is_unsafe(const Value& object, std::string_view name) {
  if (name.starts_with("_")) return true;
  const Sequence* sequence = object.sequence();
  if (sequence != nullptr && sequence->kind == Sequence::Kind::kList) {
    return std::ranges::find(kListMutators, name) != kListMutators.end();
  }
  return object.dict() != nullptr && std::ranges::find(kDictMutators, name) != kDictMutators.end();
}

Value no_attribute(const Value& object, std::string_view name) {
  const std::string owner = object.is_none() ? "None" : fmt::format("{} object", type_name(object));
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", owner, name));
}

Value loop_cycle(Interpreter&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) throw Failure("no items for cycling given");
  return arguments.positional[self.loop()->index % arguments.positional.size()];
}

// Whether the arguments are others than in the call before.
Value loop_changed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  LoopState& loop = *self.loop();
  if (loop.changed == nullptr) loop.changed = interpreter.make_namespace();
  constexpr std::string_view kLast = "arguments";
  const Value given = make_tuple(arguments.positional);
  const Value* last = loop.changed->find(kLast);
  const bool changed = last == nullptr || !equals(*last, given, interpreter.budget());
  loop.changed->set(kLast, given);
  return changed;
}

Value loop_attribute(const Value& self, std::string_view name) {
  const LoopState& loop = *self.loop();
  const std::vector<Value>& items = loop.sequence->items;
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto length = static_cast<std::int64_t>(items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return std::int64_t{loop.depth};
  if (name == "depth0") return std::int64_t{loop.depth - 1};
  if (name == "previtem") {
    return index > 0 ? items[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? items[loop.index + 1] : Value::undefined("there is no next item");
  }
  if (name == "changed") return Callable{Method{self, loop_changed}, "changed"};
  if (name == "cycle") return Callable{Method{self, loop_cycle}, "cycle"};
  return no_attribute(self, name);
}

// object[index] of a string, list or tuple; null where the index is beyond it.
std::optional<Value> element(const Value& object, std::int64_t index, Budget& budget) {
  const auto at = [&](std::size_t size) -> std::optional<std::size_t> {
    const auto length = static_cast<std::int64_t>(size);
    if (index < 0) index += length;
    if (index < 0 || index >= length) return std::nullopt;
    return static_cast<std::size_t>(index);
  };
  if (const std::string* text = object.string()) {
    budget.read(text->size());
    auto place = at(static_cast<std::size_t>(text_length(*text)));
    if (!place) return std::nullopt;
    std::string_view rest = *text;
    for (; *place > 0; --*place) rest.remove_prefix(character_size(rest));
    return rest.substr(0, character_size(rest));
  }
  const Sequence* sequence = object.sequence();
  if (sequence == nullptr || sequence->kind == Sequence::Kind::kGenerator) return std::nullopt;
  const auto place = at(sequence->items.size());
  return place ? std::optional<Value>(sequence->items[*place]) : std::nullopt;
}

}  // namespace

Value Interpreter::get_attribute(const Value& object, std::string_view name) {
  require_defined(object);
  if (is_unsafe(object, name)) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)));
  }
  if (const Builtin method = find_method(object, name))
    return Callable{Method{object, method}, std::string(name)};
  if (const Dict* dict = object.dict()) {
    budget_.spend(1 + dict->entries.size() / 8);
    const Value* found = dict->find(name);
    return found != nullptr ? *found : no_attribute(object, name);
  }
  if (const Namespace* space = object.space()) {
    const Value* found = space->find(name);
    return found != nullptr ? *found : no_attribute(object, name);
  }
  return object.loop() != nullptr ? loop_attribute(object, name) : no_attribute(object, name);
}

Value Interpreter::get_item(const Value& object, const Value& key) {
  require_defined(object);
  if (const Dict* dict = object.dict()) {
    budget_.spend(1 + dict->entries.size() / 8);
    if (const Value* found = dict->find(key)) return *found;
  } else if (key.integer() != nullptr || key.boolean() != nullptr) {
    const std::int64_t index = key.integer() != nullptr ? *key.integer() : (*key.boolean() ? 1 : 0);
    if (auto found = element(object, index, budget_)) return *std::move(found);
  }
  if (key.string() != nullptr) return get_attribute(object, *key.string());
  return Value::undefined(fmt::format("{} has no element {}", object.is_none() ? "None" : type_name(object),
                                      to_repr(key, budget_)));
}

std::shared_ptr<const Sequence> Interpreter::iterate(const Value& value) {
  if (const auto* sequence = std::get_if<std::shared_ptr<const Sequence>>(&value.data())) return *sequence;
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    budget_.allocate(dict->entries.size() * sizeof(Value));
    for (const Dict::Entry& entry : dict->entries) items.push_back(entry.first);
  } else if (const std::string* text = value.string()) {
    budget_.spend(text->size());
    budget_.allocate(text->size() * (sizeof(Value) + sizeof(std::string)));
    for (const std::string_view character : characters(*text)) items.emplace_back(character);
  } else if (!value.is_undefined()) {
    throw failure("'{}' object is not iterable", type_name(value));
  }
  return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(items));
}

}  // namespace eider::jinja
