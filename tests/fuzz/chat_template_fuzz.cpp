// A chat template of any text, rendered over a conversation with tools. The limits are a tenth of the
// program's, so that sanitizers stay within the fuzzer's time.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"

namespace {

const eider::jinja::Value& variables() {
  static const eider::jinja::Value value = eider::jinja::from_json(nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": "S"},
                 {"role": "user", "content": [{"type": "text", "text": " \u00e9\ud83e\udd86 "}]},
                 {"role": "assistant", "content": null,
                  "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": 1, "y": -2.5e30}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})"));
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string source =
      eider::jinja::normalize_source(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    const eider::jinja::Body body = eider::jinja::parse(source);
    const eider::jinja::Limits limits{
        .steps = 1'000'000, .bytes = std::size_t{64} << 20, .string_bytes = std::size_t{8} << 20};
    eider::jinja::Interpreter(std::tm{}, limits).render(body, variables());
  } catch (const eider::jinja::Failure&) {
    // What a template may end in.
  }
  return 0;
}
