// Filters of what iterates: lists, dicts, strings' characters.
#include <algorithm>
#include <functional>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

std::vector<Value> elements(Interpreter& interpreter, const Value& self) {
  const auto items = interpreter.iterate(self);
  interpreter.budget().spend(1 + items->items.size());
  interpreter.budget().allocate(items->items.size() * sizeof(Value));
  return items->items;
}

// The same for filters that take what is false for an empty list.
std::vector<Value> elements_if_true(Interpreter& interpreter, const Value& self) {
  return is_true(self) ? elements(interpreter, self) : std::vector<Value>();
}

// "a.b.0" of `item`, as the attribute argument of filters means it; an integer is an index.
Value follow(Interpreter& interpreter, const Value& item, const Value& path) {
  if (path.string() == nullptr) return interpreter.get_item(item, path);
  Value value = item;
  for (const std::string_view part : split(*path.string(), ".", -1)) {
    const bool is_index = !part.empty() && part.size() < 10 &&
                          std::ranges::all_of(part, [](char digit) { return digit >= '0' && digit <= '9'; });
    value = is_index ? interpreter.get_item(value, static_cast<std::int64_t>(std::stoll(std::string(part))))
                     : interpreter.get_item(value, part);
  }
  return value;
}

using Key = std::function<Value(const Value&)>;

// What to compare an element by: its attribute, in lower case unless case matters.
Key make_key(Interpreter& interpreter, const Value* attribute, bool case_sensitive) {
  return [&interpreter, attribute, case_sensitive](const Value& item) {
    const bool whole = attribute == nullptr || attribute->is_none();
    Value key = whole ? item : follow(interpreter, item, *attribute);
    if (case_sensitive || key.string() == nullptr) return key;
    interpreter.budget().make_string(key.string()->size());
    return Value(to_lower(*key.string()));
  };
}

Value length(Interpreter& interpreter, const Value& self, const Arguments&) {
  if (const std::string* text = self.string()) {
    interpreter.budget().read(text->size());
    return text_length(*text);
  }
  const Sequence* sequence = self.sequence();
  if (sequence != nullptr && sequence->kind != Sequence::Kind::kGenerator) {
    return static_cast<std::int64_t>(sequence->items.size());
  }
  if (const Dict* dict = self.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (self.is_undefined()) return std::int64_t{0};
  throw failure("object of type '{}' has no len()", type_name(self));
}

Value as_list(Interpreter& interpreter, const Value& self, const Arguments&) {
  return make_list(elements(interpreter, self));
}

Value first(Interpreter& interpreter, const Value& self, const Arguments&) {
  const auto items = interpreter.iterate(self);
  return items->items.empty() ? Value::undefined("No first item, sequence was empty.") : items->items.front();
}

Value last(Interpreter& interpreter, const Value& self, const Arguments&) {
  const auto items = interpreter.iterate(self);
  return items->items.empty() ? Value::undefined("No last item, sequence was empty.") : items->items.back();
}

Value reverse(Interpreter& interpreter, const Value& self, const Arguments&) {
  std::vector<Value> items = elements(interpreter, self);
  std::ranges::reverse(items);
  if (self.string() == nullptr) return make_generator(std::move(items));
  std::string text;
  for (const Value& character : items) text += *character.string();
  return text;
}

Value join(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* given = arguments.find(0, "d");
  const std::string separator = given != nullptr ? to_text(*given, interpreter.budget()) : "";
  const Value* attribute = arguments.find(1, "attribute");
  std::string result;
  bool is_first = true;
  for (const Value& item : elements(interpreter, self)) {
    const std::string text =
        to_text(attribute != nullptr ? follow(interpreter, item, *attribute) : item, interpreter.budget());
    interpreter.budget().grow_string(result.size(), separator.size() + text.size());
    if (!std::exchange(is_first, false)) result += separator;
    result += text;
  }
  return result;
}

Value items(Interpreter& interpreter, const Value& self, const Arguments&) {
  if (self.is_undefined()) return make_generator({});
  if (self.dict() == nullptr) throw Failure("Can only get item pairs from a mapping.");
  const Value pairs = find_method(self, "items")(interpreter, self, {});
  return make_generator(pairs.sequence()->items);
}

void sort_by(Interpreter& interpreter, std::vector<Value>& items, const Key& key, bool reverse_order) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) keyed.emplace_back(key(item), std::move(item));
  const auto by_key = [&](const auto& a, const auto& b) {
    return less(a.first, b.first, interpreter.budget());
  };
  // Reversed as Python does it: equal elements keep their order.
  const auto by_key_down = [&](const auto& a, const auto& b) { return by_key(b, a); };
  if (reverse_order) {
    std::ranges::stable_sort(keyed, by_key_down);
  } else {
    std::ranges::stable_sort(keyed, by_key);
  }
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = std::move(keyed[i].second);
}

// The key of attribute='a,b': first by a, then by b. Equal where both lack it.
Key make_sort_key(Interpreter& interpreter, const Value* attribute, bool case_sensitive) {
  if (attribute == nullptr || attribute->is_none()) return make_key(interpreter, nullptr, case_sensitive);
  std::vector<Value> names;
  if (attribute->string() != nullptr) {
    for (const std::string_view name : split(*attribute->string(), ",", -1)) names.emplace_back(name);
  } else {
    names.push_back(*attribute);
  }
  return [&interpreter, names = std::move(names), case_sensitive](const Value& item) {
    std::vector<Value> keys;
    for (const Value& name : names) keys.push_back(make_key(interpreter, &name, case_sensitive)(item));
    return make_list(std::move(keys));
  };
}

Value sort(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  std::vector<Value> result = elements(interpreter, self);
  const Key key = make_sort_key(interpreter, arguments.find(2, "attribute"),
                                arguments.truth_or(1, "case_sensitive", false));
  sort_by(interpreter, result, key, arguments.truth_or(0, "reverse", false));
  return make_list(std::move(result));
}

Value dict_sort(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  if (self.dict() == nullptr) throw failure("dictsort needs a mapping, not {}", type_name(self));
  const std::string_view by = arguments.text_or(1, "by", "key");
  if (by != "key" && by != "value") throw Failure("You can only sort by either \"key\" or \"value\"");
  std::vector<Value> pairs = find_method(self, "items")(interpreter, self, {}).sequence()->items;
  const Value position(std::int64_t{by == "key" ? 0 : 1});
  const Key key = make_key(interpreter, &position, arguments.truth_or(0, "case_sensitive", false));
  sort_by(interpreter, pairs, key, arguments.truth_or(2, "reverse", false));
  return make_list(std::move(pairs));
}

Value unique(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Key key =
      make_key(interpreter, arguments.find(1, "attribute"), arguments.truth_or(0, "case_sensitive", false));
  std::vector<Value> seen;
  std::vector<Value> result;
  for (Value& item : elements(interpreter, self)) {
    Value item_key = key(item);
    const bool known = std::ranges::any_of(
        seen, [&](const Value& other) { return equals(other, item_key, interpreter.budget()); });
    if (known) continue;
    seen.push_back(std::move(item_key));
    result.push_back(std::move(item));
  }
  return make_generator(std::move(result));
}

template <bool largest>
Value extreme(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Key key =
      make_key(interpreter, arguments.find(1, "attribute"), arguments.truth_or(0, "case_sensitive", false));
  std::optional<std::pair<Value, Value>> best;
  for (Value& item : elements(interpreter, self)) {
    Value item_key = key(item);
    const bool better = !best || (largest ? less(best->first, item_key, interpreter.budget())
                                          : less(item_key, best->first, interpreter.budget()));
    if (better) best.emplace(std::move(item_key), std::move(item));
  }
  return best ? best->second : Value::undefined("No aggregated item, sequence was empty.");
}

Value sum(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* attribute = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value total = start != nullptr ? *start : Value(std::int64_t{0});
  for (const Value& item : elements(interpreter, self)) {
    const bool whole = attribute == nullptr || attribute->is_none();
    total = apply(BinaryOperator::kAdd, total, whole ? item : follow(interpreter, item, *attribute),
                  interpreter.budget());
  }
  return total;
}

Value map(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  std::vector<Value> result = elements_if_true(interpreter, self);
  if (arguments.positional.empty()) {
    const Value& attribute = arguments.require(0, "attribute");
    const Value* fallback = arguments.find(1, "default");
    for (Value& item : result) {
      Value found = follow(interpreter, item, attribute);
      item = found.is_undefined() && fallback != nullptr ? *fallback : std::move(found);
    }
    return make_generator(std::move(result));
  }
  const std::string_view name = arguments.text(0, "name");
  const Builtin filter = find_filter(name);
  if (filter == nullptr) throw failure("No filter named '{}'.", name);
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
  for (Value& item : result) item = filter(interpreter, item, rest);
  return make_generator(std::move(result));
}

// select, reject and their attr forms: a test by name, truth without one.
template <bool keep, bool by_attribute>
Value select(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  constexpr std::size_t kName = by_attribute ? 1 : 0;
  const Value* attribute = by_attribute ? &arguments.require(0, "attribute") : nullptr;
  BuiltinTest test = nullptr;
  Arguments rest{{}, arguments.named};
  if (arguments.positional.size() > kName) {
    const std::string_view name = arguments.text(kName, "name");
    test = find_test(name);
    if (test == nullptr) throw failure("No test named '{}'.", name);
    rest.positional.assign(arguments.positional.begin() + kName + 1, arguments.positional.end());
  }
  std::vector<Value> result;
  for (Value& item : elements_if_true(interpreter, self)) {
    const Value tested = by_attribute ? follow(interpreter, item, *attribute) : item;
    const bool passes = test != nullptr ? test(interpreter, tested, rest) : is_true(tested);
    if (passes == keep) result.push_back(std::move(item));
  }
  return make_generator(std::move(result));
}

Value group_by(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value& attribute = arguments.require(0, "attribute");
  const Value* fallback = arguments.find(1, "default");
  const auto grouper_of = [&](const Value& item) {
    Value found = follow(interpreter, item, attribute);
    return found.is_undefined() && fallback != nullptr ? *fallback : found;
  };
  const Key lower = make_key(interpreter, nullptr, arguments.truth_or(2, "case_sensitive", false));
  const Key key = [&](const Value& item) { return lower(grouper_of(item)); };
  std::vector<Value> sorted = elements(interpreter, self);
  sort_by(interpreter, sorted, key, false);
  std::vector<std::pair<Value, std::vector<Value>>> groups;
  for (const Value& item : sorted) {
    if (groups.empty() || !equals(key(groups.back().second.front()), key(item), interpreter.budget()))
      groups.emplace_back(grouper_of(item), std::vector<Value>());
    groups.back().second.push_back(item);
  }
  std::vector<Value> result;
  for (auto& [grouper, members] : groups)
    result.push_back(make_tuple({grouper, make_list(std::move(members))}));
  return make_list(std::move(result));
}

Value batch(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::int64_t size = arguments.integer_or(0, "linecount", 0);
  const Value* fill = arguments.find(1, "fill_with");
  if (size < 1 || size > 100'000) throw Failure("batch takes a size from 1 to 100000");
  std::vector<Value> result;
  std::vector<Value> row;
  for (Value& item : elements(interpreter, self)) {
    row.push_back(std::move(item));
    if (std::cmp_equal(row.size(), size)) result.push_back(make_list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (fill != nullptr && !fill->is_none()) row.resize(static_cast<std::size_t>(size), *fill);
    result.push_back(make_list(std::move(row)));
  }
  return make_generator(std::move(result));
}

// `count` lists of about equal length; the first ones take what is left over, the others `fill_with`.
Value slice_evenly(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::int64_t count = arguments.integer_or(0, "slices", 0);
  const Value* fill = arguments.find(1, "fill_with");
  if (count < 1 || count > 100'000) throw Failure("slice takes a count from 1 to 100000");
  const std::vector<Value> all = elements(interpreter, self);
  const auto slices = static_cast<std::size_t>(count);
  interpreter.budget().spend(slices);
  interpreter.budget().allocate(slices * sizeof(Value));
  std::vector<Value> result;
  auto begin = all.begin();
  for (std::size_t i = 0; i < slices; ++i) {
    const bool is_longer = i < all.size() % slices;
    const auto end = begin + static_cast<std::ptrdiff_t>(all.size() / slices + (is_longer ? 1 : 0));
    std::vector<Value> part(begin, end);
    if (!is_longer && fill != nullptr && !fill->is_none()) part.push_back(*fill);
    result.push_back(make_list(std::move(part)));
    begin = end;
  }
  return make_generator(std::move(result));
}

constexpr NamedBuiltin kFilters[] = {
    {"batch", batch},
    {"count", length},
    {"dictsort", dict_sort},
    {"first", first},
    {"groupby", group_by},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", as_list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"slice", slice_evenly},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const NamedBuiltin> sequence_filters() {
  return kFilters;
}

}  // namespace eider::jinja
