// The methods of strings, dicts, lists and tuples.
#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace eider::jinja {

namespace {

std::vector<Value> as_values(Interpreter& interpreter, const std::vector<std::string_view>& parts) {
  interpreter.budget().spend(parts.size());
  interpreter.budget().allocate(parts.size() * (sizeof(Value) + sizeof(std::string)));
  return {parts.begin(), parts.end()};
}

// A method that maps a string to one of about its size.
template <auto map>
Value map_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  arguments.at_most(0);
  interpreter.budget().make_string(self.string()->size());
  return map(*self.string());
}

template <auto strip_side>
Value strip_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* set = arguments.find(0, "chars");
  const bool white_space = set == nullptr || set->is_none();
  interpreter.budget().make_string(self.string()->size());
  if (!white_space && arguments.text(0, "chars").empty()) return self;
  return strip_side(*self.string(), white_space ? std::string_view() : arguments.text(0, "chars"));
}

template <auto split_from>
Value split_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value* separator = arguments.find(0, "sep");
  const bool at_space = separator == nullptr || separator->is_none();
  const std::string_view text = at_space ? std::string_view() : arguments.text(0, "sep");
  if (!at_space && text.empty()) throw Failure("empty separator");
  interpreter.budget().make_string(self.string()->size());
  return make_list(
      as_values(interpreter, split_from(*self.string(), text, arguments.integer_or(1, "maxsplit", -1))));
}

Value split_text_lines(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  interpreter.budget().make_string(self.string()->size());
  return make_list(
      as_values(interpreter, split_lines(*self.string(), arguments.truth_or(0, "keepends", false))));
}

template <bool from_right>
Value partition(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string_view text = *self.string();
  const std::string_view separator = arguments.text(0, "sep");
  if (separator.empty()) throw Failure("empty separator");
  interpreter.budget().make_string(text.size());
  const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
  if (at == std::string_view::npos) {
    return from_right ? make_tuple({"", "", text}) : make_tuple({text, "", ""});
  }
  return make_tuple({text.substr(0, at), separator, text.substr(at + separator.size())});
}

// text[start:end], by the arguments at `position` and behind it, and where it begins; null where `start` is
// beyond the text, where Python finds nothing, not even an empty string.
struct Region {
  std::string_view text;
  std::int64_t begin = 0;  // characters before it
};
std::optional<Region> region_of(Interpreter& interpreter, const Value& self, const Arguments& arguments,
                                std::size_t position) {
  arguments.at_most(position + 2);
  std::string_view text = *self.string();
  if (arguments.positional.size() <= position) return Region{text};
  interpreter.budget().read(text.size());
  const std::int64_t length = text_length(text);
  const auto bound = [&](std::size_t i, std::string_view name, std::int64_t open) {
    const std::int64_t given = arguments.integer_or(i, name, open);
    return std::clamp<std::int64_t>(given < 0 ? given + length : given, 0, length + 1);
  };
  const std::int64_t start = bound(position, "start", 0);
  const std::int64_t end = std::min(bound(position + 1, "end", length), length);
  if (start > end) return std::nullopt;
  const auto byte_of = [&](std::int64_t characters_before) {
    std::size_t byte = 0;
    for (std::int64_t i = 0; i < characters_before; ++i) byte += character_size(text.substr(byte));
    return byte;
  };
  const std::size_t begin = byte_of(start);
  return Region{text.substr(begin, byte_of(end) - begin), start};
}

// startswith and endswith take one string or a tuple of them.
template <bool at_end>
Value has_affix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const auto part = region_of(interpreter, self, arguments, 1);
  if (!part) return false;
  const std::string_view text = part->text;
  const auto matches = [&](const Value& affix) {
    require_defined(affix);
    if (affix.string() == nullptr) throw failure("a prefix or suffix must be str, not {}", type_name(affix));
    return at_end ? text.ends_with(*affix.string()) : text.starts_with(*affix.string());
  };
  const Value& affix = arguments.require(0, "prefix");
  interpreter.budget().spend(1);
  if (const Sequence* several = affix.sequence()) return std::ranges::any_of(several->items, matches);
  return matches(affix);
}

template <bool at_end>
Value remove_affix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  std::string_view text = *self.string();
  const std::string_view affix = arguments.text(0, "prefix");
  interpreter.budget().make_string(text.size());
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (at_end && text.ends_with(affix)) text.remove_suffix(affix.size());
  return text;
}

Value replace_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string_view text = *self.string();
  const std::string_view from = arguments.text(0, "old");
  const std::string_view to = arguments.text(1, "new");
  interpreter.budget().read(text.size());
  const auto found = static_cast<std::size_t>(count_occurrences(text, from));
  interpreter.budget().make_string(text.size() + found * to.size());
  return replace(text, from, to, arguments.integer_or(2, "count", -1));
}

Value count_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string_view wanted = arguments.text(0, "sub");
  interpreter.budget().read(self.string()->size());
  const auto part = region_of(interpreter, self, arguments, 1);
  return part ? count_occurrences(part->text, wanted) : std::int64_t{0};
}

template <bool from_right, bool must_exist>
Value find_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string_view wanted = arguments.text(0, "sub");
  interpreter.budget().read(self.string()->size());
  if (const auto part = region_of(interpreter, self, arguments, 1)) {
    const std::size_t at = from_right ? part->text.rfind(wanted) : part->text.find(wanted);
    if (at != std::string_view::npos) return part->begin + text_length(part->text.substr(0, at));
  }
  if (must_exist) throw Failure("substring not found");
  return std::int64_t{-1};
}

Value join_texts(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  std::string result;
  bool is_first = true;
  for (const Value& item : interpreter.iterate(arguments.require(0, "iterable"))->items) {
    if (item.string() == nullptr)
      throw failure("sequence item: expected str instance, {} found", type_name(item));
    interpreter.budget().grow_string(result.size(), self.string()->size() + item.string()->size());
    if (!std::exchange(is_first, false)) result += *self.string();
    result += *item.string();
  }
  return result;
}

enum class Side : std::uint8_t { kLeft, kRight, kBoth };

template <Side padded>
Value pad_text(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string& text = *self.string();
  const std::string_view fill = arguments.text_or(1, "fillchar", " ");
  const std::int64_t width = arguments.integer_or(0, "width", 0);
  const std::int64_t length = text_length(text);
  if (width <= length) return self;
  const auto count = static_cast<std::size_t>(width - length);
  if (count > (std::size_t{1} << 30)) throw Failure("a padded string is too long");
  interpreter.budget().make_string(text.size() + count * fill.size());
  // Where the padding is odd, the width says which side gets more.
  const std::size_t half = count / 2 + (count & static_cast<std::size_t>(width) & 1);
  const std::size_t left = padded == Side::kLeft ? count : padded == Side::kRight ? 0 : half;
  std::string result;
  for (std::size_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (std::size_t i = left; i < count; ++i) result += fill;
  return result;
}

Value zero_fill(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::string_view text = *self.string();
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  Arguments padding{{arguments.require(0, "width"), "0"}, {}};
  if (!is_signed) return pad_text<Side::kLeft>(interpreter, self, padding);
  padding.positional[0] = std::max<std::int64_t>(arguments.integer_or(0, "width", 0), 1) - 1;
  const Value padded = pad_text<Side::kLeft>(interpreter, text.substr(1), padding);
  return std::string(1, text[0]) + *padded.string();
}

bool is_alpha(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}
bool is_alphanumeric(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return is_alpha(c) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

// Not empty, and all of its characters are such.
template <bool (*is_such)(char32_t)>
Value all_are(Interpreter& interpreter, const Value& self, const Arguments&) {
  interpreter.budget().read(self.string()->size());
  std::string_view text = *self.string();
  bool all = !text.empty();
  for (; all && !text.empty(); text.remove_prefix(character_size(text)))
    all = is_such(first_utf8(text).code_point);
  return all;
}

template <std::string (*map)(std::string_view)>
Value is_cased_as(Interpreter& interpreter, const Value& self, const Arguments&) {
  interpreter.budget().make_string(self.string()->size());
  const std::string& text = *self.string();
  return map(text) == text && to_lower(text) != to_upper(text);
}

Value is_ascii(Interpreter& interpreter, const Value& self, const Arguments&) {
  interpreter.budget().read(self.string()->size());
  return std::ranges::all_of(*self.string(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Value expand_tabs(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const std::int64_t tab = std::clamp<std::int64_t>(arguments.integer_or(0, "tabsize", 8), 0, 1000);
  std::string result;
  std::int64_t column = 0;
  for (std::string_view rest = *self.string(); !rest.empty();) {
    const std::string_view character = rest.substr(0, character_size(rest));
    rest.remove_prefix(character.size());
    const std::int64_t spaces = character == "\t" && tab > 0 ? tab - column % tab : 0;
    interpreter.budget().grow_string(result.size(), character.size() + static_cast<std::size_t>(spaces));
    if (character != "\t") result += character;
    result.append(static_cast<std::size_t>(spaces), ' ');
    column = character == "\n" || character == "\r" ? 0 : column + (character == "\t" ? spaces : 1);
  }
  return result;
}

Value dict_get(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  interpreter.budget().spend(1 + self.dict()->entries.size() / 8);
  if (const Value* found = self.dict()->find(arguments.require(0, "key"))) return *found;
  const Value* fallback = arguments.find(1, "default");
  return fallback != nullptr ? *fallback : Value(None{});
}

enum class Part : std::uint8_t { kKeys, kValues, kItems };

template <Part part>
Value dict_view(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  arguments.at_most(0);
  std::vector<Value> items;
  interpreter.budget().spend(self.dict()->entries.size());
  interpreter.budget().allocate(self.dict()->entries.size() * 4 * sizeof(Value));
  for (const auto& [key, value] : self.dict()->entries) {
    items.push_back(part == Part::kKeys ? key : part == Part::kValues ? value : make_tuple({key, value}));
  }
  return make_list(std::move(items));
}

Value copy(Interpreter&, const Value& self, const Arguments&) {
  return self;
}

Value sequence_count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value& wanted = arguments.require(0, "value");
  arguments.at_most(1);
  return static_cast<std::int64_t>(std::ranges::count_if(
      self.sequence()->items, [&](const Value& item) { return equals(item, wanted, interpreter.budget()); }));
}

Value sequence_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Value& wanted = arguments.require(0, "value");
  const auto& items = self.sequence()->items;
  const auto found = std::ranges::find_if(
      items, [&](const Value& item) { return equals(item, wanted, interpreter.budget()); });
  if (found == items.end()) throw Failure("the value is not in the list");
  return static_cast<std::int64_t>(found - items.begin());
}

constexpr NamedBuiltin kStringMethods[] = {
    {"capitalize", map_text<capitalize>},
    {"casefold", map_text<to_lower>},
    {"center", pad_text<Side::kBoth>},
    {"count", count_text},
    {"endswith", has_affix<true>},
    {"expandtabs", expand_tabs},
    {"find", find_text<false, false>},
    {"format", format_braces},
    {"index", find_text<false, true>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", is_ascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_decimal>},
    {"islower", is_cased_as<to_lower>},
    {"isnumeric", all_are<is_decimal>},
    {"isspace", all_are<is_space>},
    {"isupper", is_cased_as<to_upper>},
    {"join", join_texts},
    {"ljust", pad_text<Side::kRight>},
    {"lower", map_text<to_lower>},
    {"lstrip", strip_text<strip_left>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace_text},
    {"rfind", find_text<true, false>},
    {"rindex", find_text<true, true>},
    {"rjust", pad_text<Side::kLeft>},
    {"rpartition", partition<true>},
    {"rsplit", split_text<split_right>},
    {"rstrip", strip_text<strip_right>},
    {"split", split_text<split>},
    {"splitlines", split_text_lines},
    {"startswith", has_affix<false>},
    {"strip", strip_text<strip>},
    {"swapcase", map_text<swap_case>},
    {"title", map_text<title_case>},
    {"upper", map_text<to_upper>},
    {"zfill", zero_fill},
};

constexpr NamedBuiltin kDictMethods[] = {
    {"copy", copy},
    {"get", dict_get},
    {"items", dict_view<Part::kItems>},
    {"keys", dict_view<Part::kKeys>},
    {"values", dict_view<Part::kValues>},
};

constexpr NamedBuiltin kSequenceMethods[] = {
    {"copy", copy},
    {"count", sequence_count},
    {"index", sequence_index},
};

template <std::size_t n>
Builtin find_in(const NamedBuiltin (&table)[n], std::string_view name) {
  const auto* found = std::ranges::find(table, name, &NamedBuiltin::name);
  return found == std::end(table) ? nullptr : found->function;
}

}  // namespace

Builtin find_method(const Value& self, std::string_view name) {
  if (self.string() != nullptr) return find_in(kStringMethods, name);
  if (self.dict() != nullptr) return find_in(kDictMethods, name);
  if (self.sequence() != nullptr) return find_in(kSequenceMethods, name);
  return nullptr;
}

}  // namespace eider::jinja
