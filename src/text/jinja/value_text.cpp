// Values as text: str() and repr() as Python prints them, JSON in and out.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/jinja/callable.h"
#include "text/jinja/python_text.h"
#include "text/jinja/value.h"

namespace eider::jinja {

namespace {

// Appends to one growing text, so that what a value prints is bounded while it is printed.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void repr(const Value& value) {
    budget_.spend(1);
    if (const std::string* text = value.string()) {
      append(quote(*text));
    } else if (const Sequence* sequence = value.sequence()) {
      repr_sequence(*sequence);
    } else if (const Dict* dict = value.dict()) {
      append("{");
      for (std::size_t i = 0; i < dict->entries.size(); ++i) {
        if (i > 0) append(", ");
        repr(dict->entries[i].first);
        append(": ");
        repr(dict->entries[i].second);
      }
      append("}");
    } else {
      append(scalar(value));
    }
  }

  void json(const Value& value, const JsonStyle& style, int level) {
    budget_.spend(1);
    if (const std::string* text = value.string()) {
      append(json_quote(*text));
    } else if (const Sequence* sequence = value.sequence();
               sequence != nullptr && sequence->kind != Sequence::Kind::kGenerator) {
      json_items('[', ']', sequence->items, style, level,
                 [&](const Value& item) { json(item, style, level + 1); });
    } else if (const Dict* dict = value.dict()) {
      json_dict(*dict, style, level);
    } else if (value.is_none()) {
      append("null");
    } else if (const bool* boolean = value.boolean()) {
      append(*boolean ? "true" : "false");
    } else if (value.integer() != nullptr || value.floating() != nullptr) {
      append(json_number(value));
    } else {
      throw failure("Object of type {} is not JSON serializable", type_name(value));
    }
  }

  static std::string scalar(const Value& value) {
    if (value.is_undefined()) return "Undefined";
    if (value.is_none()) return "None";
    if (const bool* boolean = value.boolean()) return *boolean ? "True" : "False";
    if (const auto* integer = value.integer()) return fmt::format("{}", *integer);
    if (const double* floating = value.floating()) return format_float(*floating);
    if (const Callable* callable = value.callable()) return fmt::format("<function {}>", callable->name);
    return fmt::format("<{}>", type_name(value));
  }

  std::string take() { return std::move(text_); }

 private:
  void append(std::string_view part) {
    budget_.grow_string(text_.size(), part.size());
    text_.append(part);
  }

  void repr_sequence(const Sequence& sequence) {
    if (sequence.kind == Sequence::Kind::kGenerator) {
      append("<generator object>");
      return;
    }
    const bool tuple = sequence.kind == Sequence::Kind::kTuple;
    append(tuple ? "(" : "[");
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) append(", ");
      repr(sequence.items[i]);
    }
    if (tuple && sequence.items.size() == 1) append(",");
    append(tuple ? ")" : "]");
  }

  void new_line(const JsonStyle& style, int level) {
    append("\n");
    for (int i = 0; i < level; ++i) append(style.indent);
  }

  template <class Items, class Write>
  void json_items(char open, char close, const Items& items, const JsonStyle& style, int level, Write write) {
    append({&open, 1});
    bool is_first = true;
    for (const auto& item : items) {
      if (!is_first) append(style.item_separator);
      is_first = false;
      if (style.multi_line) new_line(style, level + 1);
      write(item);
    }
    if (style.multi_line && !is_first) new_line(style, level);
    append({&close, 1});
  }

  void json_dict(const Dict& dict, const JsonStyle& style, int level) {
    std::vector<const Dict::Entry*> order;
    for (const Dict::Entry& entry : dict.entries) order.push_back(&entry);
    if (style.sort_keys) {
      std::ranges::stable_sort(
          order, [&](const auto* a, const auto* b) { return less(a->first, b->first, budget_); });
    }
    json_items('{', '}', order, style, level, [&](const Dict::Entry* entry) {
      append(json_quote(json_key(entry->first)));
      append(style.key_separator);
      json(entry->second, style, level + 1);
    });
  }

  static std::string json_key(const Value& key) {
    if (key.string() != nullptr) return *key.string();
    if (key.is_none()) return "null";
    if (const bool* boolean = key.boolean()) return *boolean ? "true" : "false";
    if (key.integer() != nullptr || key.floating() != nullptr) return json_number(key);
    throw failure("keys must be str, int, float, bool or None, not {}", type_name(key));
  }

  static std::string json_number(const Value& value) {
    if (const double* floating = value.floating()) {
      if (std::isnan(*floating)) return "NaN";
      if (std::isinf(*floating)) return *floating < 0 ? "-Infinity" : "Infinity";
    }
    return scalar(value);
  }

  static std::string json_quote(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
      switch (c) {
        case '"':
          result += "\\\"";
          break;
        case '\\':
          result += "\\\\";
          break;
        case '\n':
          result += "\\n";
          break;
        case '\r':
          result += "\\r";
          break;
        case '\t':
          result += "\\t";
          break;
        case '\b':
          result += "\\b";
          break;
        case '\f':
          result += "\\f";
          break;
        default:
          if (static_cast<std::uint8_t>(c) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
          } else {
            result.push_back(c);
          }
      }
    }
    return result + '"';
  }

  Budget& budget_;
  std::string text_;
};

Value from_json(const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxNesting) throw failure("the variables are nested more than {} deep", kMaxNesting);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return json.get<bool>();
    case Type::number_integer:
      return json.get<std::int64_t>();
    case Type::number_float:
      return json.get<double>();
    case Type::string:
      return json.get<std::string>();
    case Type::number_unsigned: {
      const auto value = json.get<std::uint64_t>();
      if (value > INT64_MAX) throw failure("the integer {} in the variables leaves 64 bits", value);
      return static_cast<std::int64_t>(value);
    }
    case Type::array: {
      std::vector<Value> items;
      for (const auto& item : json) items.push_back(from_json(item, depth + 1));
      return make_list(std::move(items));
    }
    case Type::object: {
      std::vector<Dict::Entry> entries;
      for (const auto& [key, item] : json.items()) entries.emplace_back(key, from_json(item, depth + 1));
      return Dict(std::move(entries));
    }
    default:
      return None{};
  }
}

}  // namespace

std::string to_text(const Value& value, Budget& budget) {
  if (value.is_undefined()) return {};
  if (const std::string* text = value.string()) {
    budget.make_string(text->size());
    return *text;
  }
  return to_repr(value, budget);
}

std::string to_repr(const Value& value, Budget& budget) {
  Printer printer(budget);
  printer.repr(value);
  return printer.take();
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  Printer printer(budget);
  printer.json(value, style, 0);
  return printer.take();
}

Value from_json(const nlohmann::ordered_json& json) {
  return from_json(json, 0);
}

}  // namespace eider::jinja
