// The other endpoints, and who may ask them, with a scheduler that says what it is told to.
#include <gtest/gtest.h>

#include "tests/server/fake_server.h"

namespace eider::server {
namespace {

const Json kUser = {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})}};

Json with(Json body, const Json& more) {
  body.update(more);
  return body;
}

TEST(Completions, TextAndIds) {
  FakeServer server;
  const Json body = server.post("/v1/completions", {{"prompt", "ab"}, {"logprobs", 1}})->json();
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "Hello world");
  EXPECT_EQ(body["choices"][0]["logprobs"]["tokens"], Json::array({"H", " "}));
  EXPECT_EQ(body["choices"][0]["logprobs"]["top_logprobs"][0], (Json{{"a", -0.25}}));
  EXPECT_EQ(server.request.limits.max_tokens, 16);
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", Json::array({97, 98})}})->whole.status, 200);
  EXPECT_EQ(server.request.prompt, (std::vector<TokenId>{97, 98}));
  for (const Json& wrong :
       {Json::array({97, 1000}), Json(""), Json::array({"a", ""}), Json(1), Json::array()})
    EXPECT_EQ(server.post("/v1/completions", {{"prompt", wrong}})->json()["error"]["param"], "prompt")
        << wrong;
}

TEST(Completions, SeveralPrompts) {
  FakeServer server;
  const Json asked = {{"prompt", Json::array({"ab", Json::array({99})})}, {"n", 2}, {"echo", true}};
  const Json body = server.post("/v1/completions", asked)->json();
  ASSERT_EQ(body["choices"].size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(body["choices"][i]["text"], std::string(i < 2 ? "ab" : "c") + "Hello world");
  }
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 8);
  EXPECT_FALSE(server.request.draw_seed);  // one seed for all

  std::vector<std::string> texts(4);
  for (const Json& event : server.post("/v1/completions", with(asked, {{"stream", true}}))->events())
    for (const Json& choice : event["choices"])
      texts[choice["index"].get<std::size_t>()] += choice["text"].get<std::string>();
  EXPECT_EQ(texts,
            (std::vector<std::string>{"abHello world", "abHello world", "cHello world", "cHello world"}));
}

TEST(Completions, RefusesByName) {
  FakeServer server;
  const auto param_of = [&](const Json& fields) {
    return server.post("/v1/completions", with({{"prompt", "ab"}}, fields))->json()["error"]["param"];
  };
  EXPECT_EQ(param_of({{"suffix", "x"}}), "suffix");
  EXPECT_EQ(param_of({{"best_of", 2}}), "best_of");
  EXPECT_EQ(param_of({{"echo", true}, {"logprobs", 1}}), "echo");
  EXPECT_EQ(param_of({{"prompt", Json(std::vector<std::string>(129, "a"))}}), "prompt");
}

// What one of several prompts is refused for, all are.
TEST(Completions, OneRefusalIsOfAll) {
  FakeServer server;
  server.silent = true;
  const auto submit = server.context.scheduler.submit;
  int submitted = 0;
  server.context.scheduler.submit = [&](serving::Request request, serving::EventSink sink) {
    if (++submitted == 2) server.refusal = serving::Refusal{serving::Refusal::Kind::kQueueFull, "busy", 4};
    return submit(std::move(request), std::move(sink));
  };
  const auto reply = server.post("/v1/completions", {{"prompt", Json::array({"a", "b", "c"})}});
  EXPECT_EQ(reply->whole.status, 429);
  EXPECT_EQ(submitted, 2);
  EXPECT_EQ(server.cancelled, (std::vector<serving::RequestId>{7}));
}

TEST(Embeddings, AreOfLengthOne) {
  FakeServer server;
  const Json body = server.post("/v1/embeddings", {{"input", Json::array({"ab", "c"})}})->json();
  ASSERT_EQ(body["data"].size(), 2u);
  EXPECT_FLOAT_EQ(body["data"][1]["embedding"][0].get<float>(), 0.6f);
  EXPECT_FLOAT_EQ(body["data"][1]["embedding"][1].get<float>(), 0.8f);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  const Json packed = server.post("/v1/embeddings", {{"input", "a"}, {"encoding_format", "base64"}})->json();
  // python: base64.b64encode(struct.pack("<2f", 0.6, 0.8))
  EXPECT_EQ(packed["data"][0]["embedding"], "mpkZP83MTD8=");
}

TEST(Embeddings, AreRefusedByTheModelsName) {
  FakeServer server;
  server.refusal = serving::Refusal{serving::Refusal::Kind::kUnsupported, "no such pooling", 0};
  const auto reply = server.post("/v1/embeddings", {{"input", "ab"}});
  EXPECT_EQ(reply->whole.status, 400);
  const Json error = reply->json()["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["message"], "no such pooling");
  EXPECT_EQ(error["param"], "model");
  EXPECT_EQ(error["code"], "unsupported");
  server.refusal->kind = serving::Refusal::Kind::kPromptTooLong;
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", "ab"}})->json()["error"]["param"], "input");
}

TEST(Messages, Answer) {
  FakeServer server;
  server.pieces = {"<think>Hm.</think>", "Hello"};
  server.stop_string = "END";
  const Json body =
      server.post("/v1/messages", with(kUser, {{"max_tokens", 5}, {"system", "Be brief"}}))->json();
  EXPECT_EQ(body["type"], "message");
  EXPECT_EQ(body["content"][0]["thinking"], "Hm.");
  EXPECT_EQ(body["content"][1]["text"], "Hello");
  EXPECT_EQ(body["stop_reason"], "stop_sequence");
  EXPECT_EQ(body["stop_sequence"], "END");
  EXPECT_EQ(body["usage"]["input_tokens"], 3);
  EXPECT_EQ(body["usage"]["cache_read_input_tokens"], 3);
  EXPECT_EQ(server.rendered["conversation"]["messages"][0],
            (Json{{"role", "system"}, {"content", "Be brief"}}));
}

TEST(Messages, ToolsGoBothWays) {
  FakeServer server;
  server.pieces = {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>"};
  const Json use = Json::array({{{"type", "tool_use"}, {"id", "t1"}, {"name", "f"}, {"input", {{"a", 0}}}}});
  const Json result = Json::array({{{"type", "tool_result"}, {"tool_use_id", "t1"}, {"content", "ok"}},
                                   {{"type", "text"}, {"text", "again"}}});
  const Json asked = {{"max_tokens", 5},
                      {"tools", Json::array({{{"name", "f"}, {"input_schema", {{"type", "object"}}}}})},
                      {"messages", Json::array({{{"role", "user"}, {"content", "Hi"}},
                                                {{"role", "assistant"}, {"content", use}},
                                                {{"role", "user"}, {"content", result}}})}};
  const Json body = server.post("/v1/messages", asked)->json();
  EXPECT_EQ(body["stop_reason"], "tool_use");
  EXPECT_EQ(body["content"][0]["input"], (Json{{"a", 1}}));
  const Json& messages = server.rendered["conversation"]["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["arguments"], (Json{{"a", 0}}));
  EXPECT_EQ(messages[2], (Json{{"role", "tool"}, {"tool_call_id", "t1"}, {"content", "ok"}}));
  EXPECT_EQ(messages[3]["content"], "again");

  std::vector<std::string> types;
  for (const Json& event : server.post("/v1/messages", with(asked, {{"stream", true}}))->events())
    types.push_back(event["type"]);
  EXPECT_EQ(types, (std::vector<std::string>{"message_start", "content_block_start", "content_block_delta",
                                             "content_block_stop", "message_delta", "message_stop"}));
}

TEST(Messages, ErrorsAreOfTheirShape) {
  FakeServer server;
  const Json body = server.post("/v1/messages", kUser)->json();
  EXPECT_EQ(body["type"], "error");
  EXPECT_EQ(body["error"]["type"], "invalid_request_error");
  EXPECT_EQ(body["error"]["message"], "max_tokens: is required");
  EXPECT_EQ(server.post("/v1/messages/count_tokens", kUser)->json(), (Json{{"input_tokens", 6}}));
}

TEST(Responses, GoOnFromThePreviousOne) {
  FakeServer server;
  const Json first = server.post("/v1/responses", {{"input", "Hi"}, {"instructions", "Be brief"}})->json();
  EXPECT_EQ(first["status"], "completed");
  EXPECT_EQ(first["output"][0]["content"][0]["text"], "Hello world");
  EXPECT_EQ(first["usage"]["input_tokens_details"]["cached_tokens"], 3);
  const Json second =
      server.post("/v1/responses", {{"input", "And?"}, {"previous_response_id", first["id"]}})->json();
  EXPECT_EQ(second["previous_response_id"], first["id"]);
  EXPECT_EQ(server.rendered["conversation"]["messages"],
            Json::array({{{"role", "user"}, {"content", "Hi"}},
                         {{"role", "assistant"}, {"content", "Hello world"}},
                         {{"role", "user"}, {"content", "And?"}}}));
  const auto unknown = server.post("/v1/responses", {{"input", "x"}, {"previous_response_id", "resp_x"}});
  EXPECT_EQ(unknown->json()["error"]["code"], "previous_response_not_found");
}

TEST(Responses, Stream) {
  FakeServer server;
  std::vector<std::string> types;
  std::int64_t expected_number = 0;
  for (const Json& event : server.post("/v1/responses", {{"input", "Hi"}, {"stream", true}})->events()) {
    types.push_back(event["type"]);
    EXPECT_EQ(event["sequence_number"], expected_number++);
  }
  EXPECT_EQ(types, (std::vector<std::string>{"response.created", "response.in_progress",
                                             "response.output_item.added", "response.content_part.added",
                                             "response.output_text.delta", "response.output_text.delta",
                                             "response.output_text.done", "response.content_part.done",
                                             "response.output_item.done", "response.completed"}));
}

TEST(Text, Endpoints) {
  FakeServer server;
  EXPECT_EQ(server.post("/tokenize", {{"content", "ab"}})->json(), (Json{{"tokens", Json::array({97, 98})}}));
  EXPECT_EQ(server.post("/detokenize", {{"tokens", Json::array({97, 256})}})->json(),
            (Json{{"content", "a<|end|>"}}));
  EXPECT_EQ(server.post("/apply-template", kUser)->json(), (Json{{"prompt", "prompt"}}));
  EXPECT_EQ(server.ask("GET", "/v1/models", "")->json()["data"][0]["id"], "fake");
  EXPECT_EQ(server.ask("GET", "/v1/models/fake", "")->json()["id"], "fake");
  server.ask("GET", "/nothing", "");
  const std::string metrics = server.ask("GET", "/metrics", "")->whole.body;
  for (const char* labels :
       {R"({path="/v1/models/NAME",status="200"} 1)", R"({path="other",status="404"} 1)"})
    EXPECT_NE(metrics.find(std::string("eider_http_requests_total") + labels), std::string::npos) << labels;
}

TEST(Router, AsksForKeys) {
  FakeServer server;
  server.context.api_key_digests = digests_of({"secret", "other"});
  EXPECT_EQ(server.ask("GET", "/health", "")->whole.status, 200);
  EXPECT_EQ(server.ask("GET", "/v1/models", "")->whole.status, 401);
  EXPECT_EQ(server.ask("GET", "/v1/models", "", {{"authorization", "Bearer wrong"}})->whole.status, 401);
  EXPECT_EQ(server.ask("GET", "/v1/models", "", {{"authorization", "bearer secret"}})->whole.status, 200);
  EXPECT_EQ(server.ask("GET", "/v1/models", "", {{"x-api-key", "other"}})->whole.status, 200);
  server.ask("POST", "/v1/chat/completions", kUser.dump(), {{"x-api-key", "other"}});
  const std::string scope = server.request.scope;
  server.ask("POST", "/v1/chat/completions", kUser.dump(), {{"x-api-key", "secret"}});
  EXPECT_NE(scope, server.request.scope);
  EXPECT_EQ(scope.find("other"), std::string::npos);
}

TEST(Router, RefusesWhatIsNoRequest) {
  FakeServer server;
  EXPECT_EQ(server.ask("GET", "/nothing", "")->whole.status, 404);
  EXPECT_EQ(server.ask("GET", "/v1/chat/completions", "")->whole.status, 405);
  for (const std::string& body :
       std::vector<std::string>{"{", "[]", R"({"a":1,"a":2})", "{\"\xff\":1}", "", std::string(100000, '[')})
    EXPECT_EQ(server.ask("POST", "/v1/chat/completions", body)->whole.status, 400);
  std::string many = "{\"logit_bias\":{";
  for (int i = 0; i < 100000; ++i) many += fmt::format("{}\"{}\":1", i > 0 ? "," : "", i);
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", many + "}}")->whole.status, 400);
}

}  // namespace
}  // namespace eider::server
