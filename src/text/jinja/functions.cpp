// The global functions of chat templates.
#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace eider::jinja {

namespace {

Value raise_exception(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  throw Failure(to_text(arguments.require(0, "message"), interpreter.budget()));
}

Value strftime_now(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  const std::string format(arguments.text(0, "format"));
  interpreter.budget().read(format.size());
  std::array<char, 4096> buffer{};
  // Zero bytes are also what an empty result has, so the format gets a character of its own.
  const std::size_t size =
      std::strftime(buffer.data(), buffer.size(), (format + ".").c_str(), &interpreter.now());
  if (size == 0) throw Failure("the time does not fit its format");
  return std::string(buffer.data(), size - 1);
}

Value range(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  constexpr std::int64_t kMaxRange = 100'000;  // the sandbox's own limit
  arguments.at_most(3);
  if (arguments.positional.empty()) throw Failure("range expected at least 1 argument, got 0");
  const bool one = arguments.positional.size() == 1;
  const auto bound = [&](std::size_t position) {
    require_defined(arguments.positional[position]);
    if (arguments.positional[position].integer() == nullptr) throw Failure("range takes integers");
    return *arguments.positional[position].integer();
  };
  const std::int64_t start = one ? 0 : bound(0);
  const std::int64_t stop = bound(one ? 0 : 1);
  const std::int64_t step = arguments.positional.size() == 3 ? bound(2) : 1;
  if (step == 0) throw Failure("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (std::cmp_equal(items.size(), kMaxRange)) {
      throw failure("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange);
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  interpreter.budget().allocate(items.size() * sizeof(Value));
  interpreter.budget().spend(items.size());
  return make_list(std::move(items));
}

// The entries that dict(...) and namespace(...) are made of: those of a dict or of pairs, then the named
// ones.
std::vector<Dict::Entry> entries_of(Interpreter& interpreter, const Arguments& arguments) {
  arguments.at_most(1);
  std::vector<Dict::Entry> entries;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const Dict* dict = source.dict()) {
      entries = dict->entries;
    } else {
      for (const Value& pair : interpreter.iterate(source)->items) {
        const auto items = interpreter.iterate(pair);
        if (items->items.size() != 2) throw Failure("dict takes pairs");
        entries.emplace_back(items->items[0], items->items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(name, value);
  interpreter.budget().allocate(entries.size() * sizeof(Dict::Entry));
  interpreter.budget().spend(entries.size() * entries.size() / 8);
  return entries;
}

Value make_dict(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  return Dict(entries_of(interpreter, arguments));
}

Value make_namespace(Interpreter& interpreter, const Value&, const Arguments& arguments) {
  Namespace* space = interpreter.make_namespace();
  for (auto& [key, value] : entries_of(interpreter, arguments)) {
    if (key.string() == nullptr) throw Failure("a namespace's names are strings");
    space->set(*key.string(), std::move(value));
  }
  return space;
}

constexpr std::array<NamedBuiltin, 5> kFunctions = {{
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"range", range},
    {"dict", make_dict},
    {"namespace", make_namespace},
}};

}  // namespace

Builtin find_function(std::string_view name) {
  const auto* found = std::ranges::find(kFunctions, name, &NamedBuiltin::name);
  return found == kFunctions.end() ? nullptr : found->function;
}

}  // namespace eider::jinja
