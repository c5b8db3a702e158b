// A request's body of any bytes, for each endpoint in turn, through the router to a scheduler that answers
// with other bytes of the input: parsing of requests, of thoughts and calls of tools, and the rendering of
// answers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/server/fake_server.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr const char* kPaths[] = {
      "/v1/chat/completions",      "/v1/completions", "/v1/responses", "/v1/messages",   "/v1/embeddings",
      "/v1/messages/count_tokens", "/tokenize",       "/detokenize",   "/apply-template"};
  constexpr const char* kTemplates[] = {"<tool_call> arguments",
                                        "[TOOL_CALLS]",
                                        "[TOOL_CALLS] [ARGS]",
                                        "<｜tool▁call▁begin｜> <｜tool▁sep｜>",
                                        "\"parameters\": {\"name\": function name",
                                        "<tool_call> <function=",
                                        "<tool_call> <arg_key>",
                                        "<|tool_call_begin|> <|tool_call_argument_begin|>"};
  if (size < 4) return 0;
  eider::server::FakeServer server(kTemplates[data[0] % std::size(kTemplates)]);
  server.reason = data[1] % 2 == 0 ? eider::FinishReason::kStop : eider::FinishReason::kLength;
  const std::size_t piece_size = data[2] % 16 + 1;
  std::string_view rest(reinterpret_cast<const char*>(data + 4), size - 4);
  const std::size_t body_size = std::min(rest.find('\0'), rest.size());  // behind it: the answer
  std::string_view answer = rest.substr(std::min(body_size + 1, rest.size()));
  server.pieces.clear();
  for (std::size_t i = 0; i < answer.size(); i += piece_size)
    server.pieces.emplace_back(answer.substr(i, piece_size));
  server.ask("POST", kPaths[data[3] % std::size(kPaths)], std::string(rest.substr(0, body_size)));
  return 0;
}
