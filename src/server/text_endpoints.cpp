// GET /v1/models; POST /tokenize, /detokenize and /apply-template, as llama.cpp's server has them.
#include "server/chat_prompt.h"
#include "server/endpoints.h"
#include "server/generation_fields.h"
#include "server/prompt_input.h"

namespace eider::server {

Json list_models(const Context& context) {
  return {{"object", "list"},
          {"data", Json::array({{{"id", context.model_id},
                                 {"object", "model"},
                                 {"created", context.created},
                                 {"owned_by", "eider"},
                                 {"max_model_len", context.max_context}}})}};
}

Json tokenize(const Context& context, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  read_model(fields);
  fields.require("content");
  const std::string content = fields.string("content").value_or("");
  EncodeOptions options;
  options.add_special = fields.boolean("add_special").value_or(false);
  options.parse_special = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  fields.finish();
  if (!problem.none()) return {};
  Json tokens = Json::array();
  for (const TokenId id : context.tokenizer->encode(content, options)) {
    if (with_pieces)
      tokens.push_back({{"id", id}, {"piece", context.tokenizer->piece(id)}});
    else
      tokens.push_back(id);
  }
  return {{"tokens", std::move(tokens)}};
}

Json detokenize(const Context& context, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  read_model(fields);
  fields.require("tokens");
  std::vector<TokenId> ids;
  if (const Json* tokens = fields.array("tokens"))
    ids = read_token_ids(fields, "tokens", *tokens, *context.tokenizer);
  fields.finish();
  if (!problem.none()) return {};
  return {{"content", text_of(ids, *context.tokenizer)}};
}

Json apply_template(const Context& context, const Json& body, Problem& problem) {
  Fields fields(body, "", problem);
  Chat chat;
  read_model(fields);
  read_chat_messages(fields, chat);
  read_chat_tools(fields, chat);
  read_template_variables(fields, chat);
  if (const auto add = fields.boolean("add_generation_prompt"))
    chat.variables["add_generation_prompt"] = *add;
  fields.finish();
  if (!problem.none()) return {};
  const std::optional<ChatPrompt> prompt = prepare_chat(context, chat, std::nullopt, problem);
  return prompt ? Json{{"prompt", prompt->text}} : Json();
}

}  // namespace eider::server
