// Chat completions: requests in, answers out, with a scheduler that says what it is told to.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/server/fake_server.h"

namespace eider::server {
namespace {

const Json kUser = {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})}};
const Json kTools = {
    {"tools", Json::array({{{"type", "function"},
                            {"function", {{"name", "weather"}, {"parameters", {{"type", "object"}}}}}}})}};

Json with(Json body, const Json& more) {
  body.update(more);
  return body;
}

TEST(Chat, AnswersInOnePiece) {
  FakeServer server;
  const Json asked = with(kUser, {{"n", 2}, {"seed", 5}, {"temperature", 0}});
  const Json body = server.post("/v1/chat/completions", asked)->json();
  EXPECT_EQ(body["object"], "chat.completion");
  ASSERT_EQ(body["choices"].size(), 2u);
  EXPECT_EQ(body["choices"][1]["index"], 1);
  EXPECT_EQ(body["choices"][1]["message"]["content"], "Hello world");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["seed"], 42);  // what the scheduler says
  EXPECT_EQ(body["usage"]["prompt_tokens"], 6);
  EXPECT_EQ(body["usage"]["completion_tokens"], 4);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
  EXPECT_EQ(server.request.sampling.seed, 5u);
  EXPECT_FALSE(server.request.draw_seed);
  EXPECT_EQ(server.request.sampling.temperature, 0.0f);
  EXPECT_EQ(server.records.back().status, 200);
}

TEST(Chat, ReadsEveryField) {
  FakeServer server;
  const Json body = with(kUser, {{"max_completion_tokens", 9},
                                 {"stop", Json::array({"a", "b"})},
                                 {"top_p", 0.5},
                                 {"top_k", 7},
                                 {"min_p", 0.25},
                                 {"frequency_penalty", 1},
                                 {"presence_penalty", -1},
                                 {"repeat_penalty", 1.5},
                                 {"logit_bias", {{"5", 2.5}, {"6", -100}}},
                                 {"ignore_eos", true},
                                 {"logprobs", true},
                                 {"top_logprobs", 2},
                                 {"chat_template_kwargs", {{"enable_thinking", false}}},
                                 {"user", "me"}});
  EXPECT_EQ(server.post("/v1/chat/completions", body)->whole.status, 200);
  const SamplerOptions& options = server.request.sampling;
  EXPECT_EQ(server.request.limits.max_tokens, 9);
  EXPECT_EQ(server.request.limits.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.top_p, 0.5f);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.min_p, 0.25f);
  EXPECT_EQ(options.frequency_penalty, 1.0f);
  EXPECT_EQ(options.presence_penalty, -1.0f);
  EXPECT_EQ(options.repeat_penalty, 1.5f);
  EXPECT_EQ(options.logit_bias.at(5), 2.5f);
  EXPECT_TRUE(std::isinf(options.logit_bias.at(6)));
  EXPECT_TRUE(server.request.limits.ignore_eos);
  EXPECT_EQ(server.request.top_logprobs, 2);
  EXPECT_TRUE(server.request.draw_seed);
  EXPECT_EQ(server.rendered["variables"]["enable_thinking"], false);
}

TEST(Chat, Streams) {
  FakeServer server;
  server.reason = FinishReason::kLength;
  const Json asked = with(kUser, {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  const auto reply = server.post("/v1/chat/completions", asked);
  EXPECT_TRUE(reply->ended);
  EXPECT_TRUE(reply->whole.body.ends_with("data: [DONE]\n\n"));
  const std::vector<Json> events = reply->events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[1]["choices"][0]["delta"]["content"], "Hello");
  EXPECT_EQ(events[2]["choices"][0]["delta"]["content"], " world");
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(events[4]["choices"].empty());
  EXPECT_EQ(events[4]["usage"]["completion_tokens"], 2);
}

TEST(Chat, SplitsThoughts) {
  FakeServer server;
  server.prompt_end = "<think>\n";
  server.pieces = {"I wonder.\n", "</th", "ink>\n\n", "Yes."};
  const Json message = server.post("/v1/chat/completions", kUser)->json()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "I wonder.");
  EXPECT_EQ(message["content"], "Yes.");
}

TEST(Chat, ReadsTheChannelsOfGptOss) {
  FakeServer server("<|channel|>commentary functions.");
  server.pieces = {"<|channel|>analysis<|message|>Hm.<|end|><|start|>assi",
                   "stant<|channel|>final<|message|>Yes."};
  const Json message = server.post("/v1/chat/completions", kUser)->json()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "Hm.");
  EXPECT_EQ(message["content"], "Yes.");
}

TEST(Chat, CallsToolsInParallel) {
  FakeServer server;
  server.pieces = {"Sure.\n<tool", "_call>\n{\"name\": \"weather\", \"argu", "ments\": {\"city\": \"Pa",
                   "ris\"}}\n</tool_call>",
                   "\n<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>"};
  const Json asked = with(kUser, kTools);
  const Json choice = server.post("/v1/chat/completions", asked)->json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Sure.");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "weather");
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"city\": \"Paris\"}");
  EXPECT_EQ(choice["message"]["tool_calls"][1]["function"]["arguments"], "{}");

  std::string arguments;
  for (const Json& event : server.post("/v1/chat/completions", with(asked, {{"stream", true}}))->events())
    for (const Json& entry : event["choices"])
      if (entry["delta"].contains("tool_calls") && entry["delta"]["tool_calls"][0]["index"] == 0)
        arguments += entry["delta"]["tool_calls"][0]["function"]["arguments"].get<std::string>();
  EXPECT_EQ(arguments, "{\"city\": \"Paris\"}");

  const Json single =
      server.post("/v1/chat/completions", with(asked, {{"parallel_tool_calls", false}}))->json();
  EXPECT_EQ(single["choices"][0]["message"]["tool_calls"].size(), 1u);
}

TEST(Chat, ForcesATool) {
  FakeServer server;
  server.pieces = {"{\"city\": 1}}\n</tool_call>"};
  const Json choice = {{"tool_choice", {{"type", "function"}, {"function", {{"name", "weather"}}}}}};
  const Json body = server.post("/v1/chat/completions", with(with(kUser, kTools), choice))->json();
  const std::string prompt(server.request.prompt.begin(), server.request.prompt.end());
  EXPECT_TRUE(prompt.ends_with("<tool_call>\n{\"name\": \"weather\", \"arguments\": ")) << prompt;
  EXPECT_EQ(body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{\"city\": 1}");
}

// The mask would leave the model no way to end the call.
TEST(Chat, AForcedToolIsNoJsonObject) {
  FakeServer server;
  const Json tools = {
      {"tools", Json::array({{{"type", "function"}, {"name", "f"}, {"parameters", Json::object()}}})}};
  const Json asked = with(with(kUser, kTools), {{"response_format", {{"type", "json_object"}}}});
  EXPECT_EQ(server.post("/v1/chat/completions", asked)->whole.status, 200);
  EXPECT_TRUE(server.request.make_mask);
  const auto refused = server.post("/v1/chat/completions", with(asked, {{"tool_choice", "required"}}));
  EXPECT_EQ(refused->whole.status, 400);
  EXPECT_EQ(refused->json()["error"]["param"], "response_format");
  const Json response = with(tools, {{"input", "Hi"},
                                     {"tool_choice", {{"type", "function"}, {"name", "f"}}},
                                     {"text", {{"format", {{"type", "json_object"}}}}}});
  EXPECT_EQ(server.post("/v1/responses", response)->json()["error"]["param"], "text.format");
}

TEST(Chat, RefusesByName) {
  const Json image = Json::array({{{"type", "image_url"}}});
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"temprature", 1}}, "temprature"},
      {{{"temperature", "hot"}}, "temperature"},
      {{{"temperature", 101}}, "temperature"},
      {{{"n", 0}}, "n"},
      {{{"seed", -1}}, "seed"},
      {{{"max_tokens", 1.5}}, "max_tokens"},
      {{{"stop", Json::array({"a", 1})}}, "stop"},
      {{{"stop", ""}}, "stop"},
      {{{"logit_bias", {{"x", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"257", 1}}}}, "logit_bias"},
      {{{"top_logprobs", 3}}, "top_logprobs"},
      {{{"response_format", {{"type", "json_schema"}, {"json_schema", Json::object()}}}},
       "response_format.type"},
      {{{"messages", Json::array()}}, "messages"},
      {{{"messages", "Hi"}}, "messages"},
      {{{"messages", nullptr}}, "messages"},
      {{{"messages", Json::array({1})}}, "messages[0]"},
      {{{"messages", Json::array({{{"role", "me"}, {"content", "x"}}})}}, "messages[0].role"},
      {{{"messages", Json::array({{{"role", "user"}}})}}, "messages[0].content"},
      {{{"messages", Json::array({{{"role", "user"}, {"content", image}}})}}, "messages[0].content[0].type"},
      {{{"messages", Json::array({{{"role", "user"}, {"content", "refuse me"}}})}}, "messages"},
      {{{"tools", Json::array({{{"type", "function"}, {"function", Json::object()}}})}},
       "tools[0].function.name"},
      {{{"tool_choice", "required"}}, "tool_choice"},
      {{{"audio", Json::object()}}, "audio"},
      {{{"stream_options", {{"x", 1}}}}, "stream_options.x"},
  };
  FakeServer server;
  for (const auto& [fields, param] : cases) {
    const auto reply = server.post("/v1/chat/completions", with(kUser, fields));
    EXPECT_EQ(reply->whole.status, 400) << fields;
    EXPECT_EQ(reply->json()["error"]["param"], param) << reply->whole.body;
    EXPECT_EQ(reply->json()["error"]["type"], "invalid_request_error");
  }
  EXPECT_TRUE(server.request.prompt.empty());  // nothing was submitted
}

TEST(Chat, TellsTheSchedulersRefusals) {
  FakeServer server;
  server.refusal = serving::Refusal{serving::Refusal::Kind::kQueueFull, "busy", 4};
  const auto reply = server.post("/v1/chat/completions", kUser);
  EXPECT_EQ(reply->whole.status, 429);
  EXPECT_EQ(reply->whole.headers, (HttpHeaders{{"retry-after", "4"}}));
  server.refusal->kind = serving::Refusal::Kind::kPromptTooLong;
  EXPECT_EQ(server.post("/v1/chat/completions", kUser)->json()["error"]["code"], "context_length_exceeded");
  server.refusal->kind = serving::Refusal::Kind::kDraining;
  const Json message = server.post("/v1/messages", with(kUser, {{"max_tokens", 1}}))->json();
  EXPECT_EQ(message["error"]["type"], "overloaded_error");
}

// The next turn brings the answer's text; its tokens must be those that were generated, not those of the
// text.
TEST(Chat, GeneratedIdsAreKept) {
  FakeServer server;
  server.pieces = {"zHello", "qworld"};  // of which the ids are 'z' and 'q'
  server.render_messages = true;
  const Json first = server.post("/v1/chat/completions", kUser)->json();
  Json messages = kUser["messages"];
  messages.push_back({{"role", "assistant"}, {"content", first["choices"][0]["message"]["content"]}});
  messages.push_back({{"role", "user"}, {"content", "!"}});
  server.post("/v1/chat/completions", {{"messages", messages}});
  const std::string kept(server.request.prompt.begin(), server.request.prompt.end());
  EXPECT_EQ(kept, "Hizq!");
  messages[1]["content"] = "zHelloqWorld";  // the client changed it
  server.post("/v1/chat/completions", {{"messages", messages}});
  const std::string changed(server.request.prompt.begin(), server.request.prompt.end());
  EXPECT_EQ(changed, "HizHelloqWorld!");
}

// The text ends before the stop string, but the ids go on into it: those that the text has whole are kept.
TEST(Chat, GeneratedIdsAreKeptUpToAStopString) {
  FakeServer server("<tool_call> arguments", {"l l"});
  ASSERT_EQ(server.context.tokenizer->encode("ll"), (std::vector<TokenId>{256}));
  server.pieces = {"H", "e", "l", "l", "o"};  // the ids of single letters
  server.stop_string = "!";
  server.render_messages = true;
  const Json first = server.post("/v1/chat/completions", kUser)->json();
  Json messages = kUser["messages"];
  messages.push_back({{"role", "assistant"}, {"content", first["choices"][0]["message"]["content"]}});
  messages.push_back({{"role", "user"}, {"content", "?"}});
  server.post("/v1/chat/completions", {{"messages", messages}});
  EXPECT_EQ(server.request.prompt, (std::vector<TokenId>{'H', 'i', 'H', 'e', 'l', 'l', 'o', '?'}));
}

TEST(Chat, AClientThatLeavesCancels) {
  FakeServer server;
  server.silent = true;
  const auto reply = server.post("/v1/chat/completions", kUser);
  ASSERT_TRUE(reply->gone);
  reply->gone();
  EXPECT_EQ(server.cancelled, (std::vector<serving::RequestId>{7}));
}

}  // namespace
}  // namespace eider::server
