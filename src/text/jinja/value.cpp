#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/callable.h"
#include "text/jinja/python_text.h"

namespace eider::jinja {

namespace {

int depth_of(const Value& value) {
  if (const Sequence* sequence = value.sequence()) return sequence->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  return 0;
}

void grow_depth(int& depth, const Value& item) {
  depth = std::max(depth, depth_of(item) + 1);
  if (depth > kMaxNesting) throw failure("values are nested more than {} deep", kMaxNesting);
}

// A number as both of its readings; bools are numbers in Python.
struct Number {
  double floating;
  std::optional<std::int64_t> integer;
};

std::optional<Number> number(const Value& value) {
  if (const bool* boolean = value.boolean()) return Number{*boolean ? 1.0 : 0.0, *boolean ? 1 : 0};
  if (const auto* integer = value.integer()) return Number{static_cast<double>(*integer), *integer};
  if (const double* floating = value.floating()) return Number{*floating, std::nullopt};
  return std::nullopt;
}

// Values without parts.
bool equal_scalars(const Value& a, const Value& b) {
  const auto a_number = number(a);
  const auto b_number = number(b);
  if (a_number && b_number) {
    return a_number->integer && b_number->integer ? *a_number->integer == *b_number->integer
                                                  : a_number->floating == b_number->floating;
  }
  if (a.string() != nullptr && b.string() != nullptr) return *a.string() == *b.string();
  if (a.data().index() != b.data().index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (a.space() != nullptr) return a.space() == b.space();
  if (a.loop() != nullptr) return a.loop() == b.loop();
  return a.callable() != nullptr && a.callable() == b.callable();
}

bool is_hashable(const Value& key) {
  return key.sequence() == nullptr && key.dict() == nullptr;
}

}  // namespace

Value::Value(Sequence sequence) : data_(std::make_shared<const Sequence>(std::move(sequence))) {}
Value::Value(Dict dict) : data_(std::make_shared<const Dict>(std::move(dict))) {}
Value::Value(Callable callable) : data_(std::make_shared<const Callable>(std::move(callable))) {}

Sequence::Sequence(Kind kind_, std::vector<Value> items_) : kind(kind_), items(std::move(items_)) {
  for (const Value& item : items) grow_depth(depth, item);
}

Dict::Dict(std::vector<Entry> given) {
  entries.reserve(given.size());
  for (Entry& entry : given) {
    if (!is_hashable(entry.first)) throw failure("unhashable type: '{}'", type_name(entry.first));
    grow_depth(depth, entry.second);
    if (const Value* earlier = find(entry.first)) {
      const_cast<Value&>(*earlier) = std::move(entry.second);
    } else {
      entries.push_back(std::move(entry));
    }
  }
}

const Value* Dict::find(const Value& key) const {
  const auto found =
      std::ranges::find_if(entries, [&](const Entry& entry) { return equal_scalars(entry.first, key); });
  return found == entries.end() ? nullptr : &found->second;
}

const Value* Dict::find(std::string_view key) const {
  const auto found = std::ranges::find_if(entries, [&](const Entry& entry) {
    return entry.first.string() != nullptr && *entry.first.string() == key;
  });
  return found == entries.end() ? nullptr : &found->second;
}

void Namespace::set(std::string_view name, Value value) {
  const auto found = std::ranges::find(attributes, name, &std::pair<std::string, Value>::first);
  if (found != attributes.end()) {
    found->second = std::move(value);
  } else {
    attributes.emplace_back(name, std::move(value));
  }
}

const Value* Namespace::find(std::string_view name) const {
  const auto found = std::ranges::find(attributes, name, &std::pair<std::string, Value>::first);
  return found == attributes.end() ? nullptr : &found->second;
}

Value make_list(std::vector<Value> items) {
  return Sequence(Sequence::Kind::kList, std::move(items));
}
Value make_tuple(std::vector<Value> items) {
  return Sequence(Sequence::Kind::kTuple, std::move(items));
}
Value make_generator(std::vector<Value> items) {
  return Sequence(Sequence::Kind::kGenerator, std::move(items));
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.boolean() != nullptr) return "bool";
  if (value.integer() != nullptr) return "int";
  if (value.floating() != nullptr) return "float";
  if (value.string() != nullptr) return "str";
  if (value.dict() != nullptr) return "dict";
  if (value.space() != nullptr) return "Namespace";
  if (value.loop() != nullptr) return "LoopContext";
  if (const Sequence* sequence = value.sequence()) {
    if (sequence->kind == Sequence::Kind::kList) return "list";
    return sequence->kind == Sequence::Kind::kTuple ? "tuple" : "generator";
  }
  return "function";
}

bool is_true(const Value& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const auto as_number = number(value)) return as_number->floating != 0;
  if (const std::string* text = value.string()) return !text->empty();
  if (const Sequence* sequence = value.sequence()) {
    return sequence->kind == Sequence::Kind::kGenerator || !sequence->items.empty();
  }
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

bool equals(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (a.string() != nullptr && b.string() != nullptr)
    budget.read(std::min(a.string()->size(), b.string()->size()));
  const Sequence* a_items = a.sequence();
  const Sequence* b_items = b.sequence();
  if (a_items != nullptr && b_items != nullptr) {
    if (a_items == b_items) return true;
    if (a_items->kind == Sequence::Kind::kGenerator) return false;
    return a_items->kind == b_items->kind &&
           std::ranges::equal(a_items->items, b_items->items,
                              [&](const Value& x, const Value& y) { return equals(x, y, budget); });
  }
  const Dict* a_dict = a.dict();
  const Dict* b_dict = b.dict();
  if (a_dict != nullptr && b_dict != nullptr) {
    if (a_dict == b_dict) return true;
    if (a_dict->entries.size() != b_dict->entries.size()) return false;
    return std::ranges::all_of(a_dict->entries, [&](const Dict::Entry& entry) {
      budget.spend(b_dict->entries.size());
      const Value* other = b_dict->find(entry.first);
      return other != nullptr && equals(entry.second, *other, budget);
    });
  }
  return equal_scalars(a, b);
}

bool less(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  const auto a_number = number(a);
  const auto b_number = number(b);
  if (a_number && b_number) {
    return a_number->integer && b_number->integer ? *a_number->integer < *b_number->integer
                                                  : a_number->floating < b_number->floating;
  }
  if (a.string() != nullptr && b.string() != nullptr) {
    budget.read(std::min(a.string()->size(), b.string()->size()));
    return *a.string() < *b.string();  // bytes of UTF-8 sort as code points do
  }
  const Sequence* a_items = a.sequence();
  const Sequence* b_items = b.sequence();
  if (a_items != nullptr && b_items != nullptr && a_items->kind == b_items->kind) {
    const std::size_t common = std::min(a_items->items.size(), b_items->items.size());
    for (std::size_t i = 0; i < common; ++i) {
      if (!equals(a_items->items[i], b_items->items[i], budget)) {
        return less(a_items->items[i], b_items->items[i], budget);
      }
    }
    return a_items->items.size() < b_items->items.size();
  }
  throw failure("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

}  // namespace eider::jinja
