// A request's body as JSON: what is accepted must read the same when it is written out again, and be what the
// automaton behind json_object takes for one object.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/fields.h"
#include "server/json_automaton.h"
#include "text/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eider::server;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  Problem problem;
  const auto parsed = parse_body(body, problem);
  EIDER_CHECK(parsed.has_value() == problem.none());
  if (!parsed) return 0;
  const std::string text = eider::to_json_text(*parsed);
  const auto again = parse_body(text, problem);
  EIDER_CHECK(again && *again == *parsed);
  JsonAutomaton automaton;
  EIDER_CHECK(automaton.take(text) && automaton.done());
  return 0;
}
