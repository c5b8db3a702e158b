// `eider tokenize`: text to token ids and back, and conversations to the exact prompt, without running a
// model.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "text/detokenizer.h"
#include "text/json_text.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "tools/chat_prompt.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "weights/gguf.h"
#include "weights/gguf_vocabulary.h"
#include "weights/hf_vocabulary.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeFlags {
  EngineFlags engine;  // of which only the model counts here
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> chat;
  std::optional<std::string> tools;
  TemplateFlags chat_template;
  bool json = false;
  bool jsonl = false;
  bool decode = false;
  bool render = false;
  bool no_parse_special = false;
  bool add_special = false;

  EncodeOptions encode_options() const {
    return {.add_special = add_special, .parse_special = !no_parse_special, .repeat_bos = true};
  }
};

/// The tokenizer of a GGUF file (one without tensors too), a model directory or a tokenizer.json.
Result<Vocabulary> read_any_vocabulary(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const std::filesystem::path file = std::filesystem::path(path) / "tokenizer.json";
    if (!std::filesystem::exists(file, ignored)) return error("{}: a directory without tokenizer.json", path);
    return read_hf_vocabulary(file.string(), AddSpecialRule::kTokenizerConfig);
  }
  if (path.ends_with(".json")) return read_hf_vocabulary(path, AddSpecialRule::kPostProcessor);
  EIDER_TRY(const MappedFile file, MappedFile::open(path));
  EIDER_TRY(const GgufFile gguf, GgufFile::parse(file.bytes()).context(path));
  return read_vocabulary(gguf).context(path);
}

Result<Tokenizer> open_tokenizer(const std::string& path) {
  EIDER_TRY(Vocabulary vocabulary, read_any_vocabulary(path));
  return Tokenizer::create(std::move(vocabulary)).context(path);
}

/// Byte for byte: the last newline too.
Result<std::string> read_text(const TokenizeFlags& flags) {
  if (flags.prompt) return *flags.prompt;
  return read_file_or_stdin(flags.file);
}

/// JSON text that keeps the order of keys. Bytes that are not UTF-8 are an error.
Result<Json> parse_ordered(const std::string& text, std::string_view where) {
  Json value = parse_ordered_json(text);
  if (value.is_discarded()) return error("{}: not JSON", where);
  return value;
}

Result<Json> read_array(const std::string& path, std::string_view what) {
  EIDER_TRY(const std::string text, read_file(path));
  EIDER_TRY(Json value, parse_ordered(text, path));
  if (!value.is_array()) return error("{}: expected an array of {}", path, what);
  return value;
}

Result<std::string> render_prompt(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  EIDER_TRY(const ChatPrompt prompt, ChatPrompt::create(flags.chat_template, tokenizer, flags.engine.model));
  Json conversation = Json::object();
  EIDER_TRY(conversation["messages"], read_array(*flags.chat, "messages"));
  if (flags.tools) {
    EIDER_TRY(conversation["tools"], read_array(*flags.tools, "tools"));
  }
  return prompt.render(conversation);
}

/// A token as people can read it: spaces and text as they are, control characters escaped, bytes that are no
/// text as \xNN.
std::string readable_piece(const Tokenizer& tokenizer, TokenId id) {
  const std::string_view bytes =
      tokenizer.bytes(id).empty() ? tokenizer.piece(id) : std::string_view(tokenizer.bytes(id));
  const bool text = is_valid_utf8(bytes);
  std::string readable;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      readable += "\\n";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !text)) {
      readable += fmt::format("\\x{:02X}", byte);
    } else {
      readable.push_back(c);
    }
  }
  return readable;
}

/// One line a token: its id and its piece; on a terminal neighbours differ in colour.
std::string to_text(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool color) {
  constexpr std::array<int, 4> kBackgrounds = {44, 42, 45, 46};
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = readable_piece(tokenizer, ids[i]);
    if (color) {
      text +=
          fmt::format("{:>8} \033[30;{}m{}\033[0m\n", ids[i], kBackgrounds[i % kBackgrounds.size()], piece);
    } else {
      text += fmt::format("{:>8} {}\n", ids[i], piece);
    }
  }
  return text;
}

std::string to_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Json pieces = Json::array();
  for (const TokenId id : ids) pieces.push_back(tokenizer.piece(id));
  const Json object = {{"ids", ids}, {"pieces", std::move(pieces)}};
  return to_json_text(object) + "\n";
}

Result<std::vector<TokenId>> ids_of_json(const Json& value, const Vocabulary& vocabulary) {
  if (!value.is_array()) return error("expected an array of ids");
  std::vector<TokenId> ids;
  for (const Json& id : value) {
    if (!id.is_number_integer() || id < 0 || id >= vocabulary.tokens.size())
      return error("item {}: {} is not an id below {}", ids.size(), to_json_text(id),
                   vocabulary.tokens.size());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

/// Ids as people have them at hand: a JSON array, or numbers with spaces or commas between.
Result<std::vector<TokenId>> parse_ids(std::string text, const Vocabulary& vocabulary) {
  constexpr const char* kSpace = " \t\r\n,";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return std::vector<TokenId>();
  if (text[first] != '[') {
    std::string list;
    for (std::size_t begin = first; begin != std::string::npos;) {
      const std::size_t end = text.find_first_of(kSpace, begin);
      list += (list.empty() ? "[" : ",") + text.substr(begin, end - begin);
      begin = text.find_first_not_of(kSpace, end);
    }
    text = list + "]";
  }
  EIDER_TRY(const Json value, parse_ordered(text, "ids"));
  return ids_of_json(value, vocabulary).context("ids");
}

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer, true, Detokenizer::ControlTokens::kSpelled);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

/// One line of --jsonl: a string to ids, or with --decode ids to a string.
Result<std::string> convert_line(const TokenizeFlags& flags, const Tokenizer& tokenizer, const Json& value) {
  if (flags.decode) {
    EIDER_TRY(const auto ids, ids_of_json(value, tokenizer.vocabulary()));
    return to_json_text(Json(decode(tokenizer, ids))) + "\n";
  }
  if (!value.is_string()) return error("expected a string");
  const auto ids = tokenizer.encode(value.get_ref<const std::string&>(), flags.encode_options());
  return fmt::format("[{}]\n", fmt::join(ids, ","));
}

Status convert_lines(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  EIDER_TRY(const std::string input, read_text(flags));
  std::size_t number = 0;
  std::string output;
  for (std::size_t begin = 0; begin < input.size();) {
    const std::size_t end = std::min(input.find('\n', begin), input.size());
    const std::string where = fmt::format("line {}", ++number);
    EIDER_TRY(const Json value, parse_ordered(input.substr(begin, end - begin), where));
    EIDER_TRY(const std::string line, convert_line(flags, tokenizer, value).context(where));
    output += line;
    begin = end + 1;
  }
  return write_stdout(output);
}

Result<int> tokenize(const TokenizeFlags& flags) {
  EIDER_TRY(const Tokenizer tokenizer, open_tokenizer(flags.engine.model));
  if (flags.jsonl) {
    EIDER_TRY_STATUS(convert_lines(flags, tokenizer));
    return kExitSuccess;
  }
  EIDER_TRY(std::string text, flags.chat ? render_prompt(flags, tokenizer) : read_text(flags));
  if (flags.render) {
    EIDER_TRY_STATUS(write_stdout(text));
    return kExitSuccess;
  }
  if (flags.decode) {
    EIDER_TRY(const auto ids, parse_ids(std::move(text), tokenizer.vocabulary()));
    EIDER_TRY_STATUS(write_stdout(decode(tokenizer, ids)));
    return kExitSuccess;
  }
  const std::vector<TokenId> ids = tokenizer.encode(text, flags.encode_options());
  EIDER_TRY_STATUS(write_stdout(flags.json ? to_json(tokenizer, ids)
                                           : to_text(tokenizer, ids, shows_colors(STDOUT_FILENO))));
  return kExitSuccess;
}

constexpr const char* kTokenizeExamples = R"(Examples:
  eider tokenize -m model.gguf -p "Hello, world"            a token a line
  eider tokenize -m tokenizer.json -f book.txt --json | jq .ids
  echo '"Hello"' | eider tokenize -m DIRECTORY --jsonl      an array a line
  eider tokenize -m model.gguf --decode -p "9906 11 1917"
  eider tokenize -m model.gguf --chat messages.json --render    the exact prompt

Special tokens written in the text are recognised and none are added unless
flags say otherwise. strftime_now() of chat templates tells SOURCE_DATE_EPOCH in
UTC where that is set.)";

void add_chat_flags(CLI::App& command, TokenizeFlags& flags) {
  constexpr const char* kGroup = "Chat";
  add_text_flag(command, "--chat", "PATH", flags.chat,
                "Takes the prompt of a conversation: a JSON array of messages", kGroup);
  add_text_flag(command, "--tools", "PATH", flags.tools, "A JSON array of tools for the chat template",
                kGroup);
  add_switch(command, "--render", flags.render, "Prints the prompt and nothing else", kGroup);
  add_template_flags(command, flags.chat_template, kGroup);
}

/// What flags say together; CLI11 checks each by itself.
Status check_flags(const TokenizeFlags& flags) {
  const std::pair<bool, const char*> refused[] = {
      {flags.prompt && flags.file, "--file: not together with --prompt: the text has one source"},
      {flags.chat && (flags.prompt || flags.file),
       "--chat: not together with --prompt or --file: the text has one source"},
      {flags.chat && (flags.jsonl || flags.decode), "--chat: not together with --jsonl or --decode"},
      {flags.json && (flags.jsonl || flags.decode || flags.render),
       "--json: not together with --jsonl, --decode or --render: there is one kind of output"},
      {!flags.chat && flags.tools, "--tools: only with --chat"},
      {!flags.chat && flags.chat_template.file, "--chat-template-file: only with --chat"},
      {!flags.chat && !flags.chat_template.variables.empty(), "--template-args: only with --chat"},
      {!flags.chat && flags.render, "--render: only with --chat"},
      {!flags.prompt && !flags.file && !flags.chat && isatty(STDIN_FILENO) == 1,
       "--prompt: no text: give -p TEXT, -f PATH or --chat PATH, or pipe text into stdin"},
  };
  for (const auto& [wrong, reason] : refused)
    if (wrong) return error("{}", reason);
  return {};
}

}  // namespace

void add_tokenize_command(CLI::App& program, Action& action) {
  const auto flags = std::make_shared<TokenizeFlags>();
  const auto choose = [flags, &action]() -> Status {
    EIDER_TRY_STATUS(check_flags(*flags));
    action = [flags](const Terminal&) { return tokenize(*flags); };
    return {};
  };
  CLI::App& command = add_command(program, "tokenize", "Shows the token ids of a text, or the text of ids",
                                  kTokenizeExamples, choose);
  add_model_flag(command, flags->engine, "A .gguf file, a Hugging Face directory, or a tokenizer.json");
  add_text_flag(command, "-p,--prompt", "TEXT", flags->prompt,
                "The text [stdin, where that is not a terminal]");
  add_text_flag(command, "-f,--file", "PATH", flags->file,
                "Reads the text from a file, byte for byte; -: stdin");
  add_switch(command, "--json", flags->json, R"(Prints {"ids": [...], "pieces": [...]})");
  add_switch(command, "--jsonl", flags->jsonl,
             "Each line is a JSON string; prints a JSON array of ids for each");
  add_switch(command, "--decode", flags->decode,
             "The text is ids, and what they say is printed (--jsonl: arrays, strings)");
  add_switch(command, "--no-parse-special", flags->no_parse_special,
             "Control tokens in the text are only text");
  add_switch(command, "--add-special", flags->add_special, "Adds BOS and EOS as the tokenizer asks for");
  add_chat_flags(command, *flags);
}

}  // namespace eider
