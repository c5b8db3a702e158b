// The post-processor of a tokenizer.json: the tokens it puts around a text.
#include "weights/tokenizer_component.h"

namespace eider {
namespace {

/// The id of the one token that a template's special token stands for.
Result<TokenId> template_token(const JsonElement& processor, const JsonElement& special,
                               const Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement name_element, special.at("id"));
  EIDER_TRY(const auto name, name_element.string());
  EIDER_TRY(const JsonElement tokens, processor.at("special_tokens"));
  EIDER_TRY(const JsonElement token, tokens.at(name));
  EIDER_TRY(const JsonElement ids_element, token.at("ids"));
  EIDER_TRY(const auto ids, ids_element.as<simdjson::dom::array>("an array"));
  std::int64_t id = -1;
  if (ids.size() != 1 || ids.at(0).get(id) != simdjson::SUCCESS || id < 0 ||
      static_cast<std::uint64_t>(id) >= vocabulary.tokens.size())
    return error("{}: expected the id of one token", ids_element.place);
  return static_cast<TokenId>(id);
}

/// At most one token before the text, which is BOS, and one behind it, which is EOS.
Status read_template(const JsonElement& processor, Vocabulary& vocabulary) {
  EIDER_TRY(const JsonElement single, processor.at("single"));
  EIDER_TRY(const auto items, single.as<simdjson::dom::array>("an array"));
  bool after_text = false;
  for (const simdjson::dom::element value : items) {
    const JsonElement item{value, single.place};
    const auto special = item.find("SpecialToken");
    if (!special) {
      if (!item.find("Sequence") || after_text) return error("{}: not a template of one text", single.place);
      after_text = true;
      continue;
    }
    EIDER_TRY(const TokenId id, template_token(processor, *special, vocabulary));
    bool& added = after_text ? vocabulary.add_eos : vocabulary.add_bos;
    if (added) return error("{}: more than one token on one side of the text", single.place);
    added = true;
    (after_text ? vocabulary.eos : vocabulary.bos) = id;
  }
  return {};
}

}  // namespace

Status read_post_processor(const JsonElement& root, Vocabulary& vocabulary) {
  EIDER_TRY(const auto parts, component_parts(root.find("post_processor"), "processors"));
  for (const JsonElement& part : parts) {
    EIDER_TRY(const auto type, part.string("type"));
    if (type == "TemplateProcessing") {
      EIDER_TRY_STATUS(read_template(part, vocabulary));
    } else if (type != "ByteLevel") {  // which only moves offsets
      return unknown_component(part, "TemplateProcessing, ByteLevel");
    }
  }
  return {};
}

}  // namespace eider
