#include "tools/chat_commands.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/sampler.h"
#include "tools/chat_file.h"
#include "tools/help.h"

namespace eider {
namespace {

using Handler = Result<ChatStep>(Chat&, const std::string& argument, const Terminal&);

struct Command {
  std::string_view name;
  std::string_view argument;  // for people: empty, "NAME", "[NAME]"
  std::string_view help;
  Handler* handle;
};

Handler show_help, reset, set_system, regenerate, edit, drop, save, load, show_statistics, set, leave;

constexpr std::array kCommands = {
    Command{"/help", "", "This list", show_help},
    Command{"/reset", "", "Forget the conversation (the system message stays)", reset},
    Command{"/system", "[TEXT]", "Set the system message; without TEXT, remove it", set_system},
    Command{"/regen", "", "Answer the last message again, with the next seed", regenerate},
    Command{"/edit", "[TEXT]", "Change the last message and have it answered", edit},
    Command{"/drop", "", "Forget the oldest turn, to make room in the context", drop},
    Command{"/save", "FILE", "Write the conversation to FILE, as JSON", save},
    Command{"/load", "FILE", "Go on with a conversation that was saved", load},
    Command{"/stats", "", "What the last answer took, and how full the context is", show_statistics},
    Command{"/set", "[NAME VALUE]", "Change how answers are made; alone, list the settings", set},
    Command{"/quit", "", "Leave (Ctrl-D too)", leave},
};

constexpr std::string_view kKeys =
    "Enter sends; Alt-Enter, or a backslash at the line's end, begins a new line.\n"
    "Up and Down walk the history, Ctrl-R searches it. // sends a message that\n"
    "begins with a slash. Ctrl-C stops an answer; again, it leaves.";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

Result<ChatStep> show_help(Chat&, const std::string&, const Terminal& terminal) {
  std::string text;
  for (const Command& command : kCommands)
    text += help_line(fmt::format("  {} {}", command.name, command.argument), command.help, 23);
  terminal.note(text.append(kKeys));
  return ChatStep::kRead;
}

Result<ChatStep> reset(Chat& chat, const std::string&, const Terminal& terminal) {
  chat.dialogue.reset();
  chat.last_turn.reset();
  terminal.note("forgotten; a new conversation begins");
  return ChatStep::kRead;
}

Result<ChatStep> set_system(Chat& chat, const std::string& text, const Terminal& terminal) {
  chat.dialogue.set_system(text.empty() ? std::nullopt : std::optional(text));
  terminal.note(text.empty() ? "the system message is removed" : "the system message is set");
  return ChatStep::kRead;
}

Result<ChatStep> regenerate(Chat& chat, const std::string&, const Terminal& terminal) {
  const bool answered = !chat.dialogue.awaits_answer();
  if (!chat.dialogue.forget_answer()) return error("/regen: there is no message to answer yet");
  if (answered) {
    ++*chat.sampling.seed;
    terminal.note(fmt::format("seed: {}", *chat.sampling.seed));
  }
  return ChatStep::kAnswer;
}

Result<ChatStep> edit(Chat& chat, const std::string& text, const Terminal&) {
  const std::optional<std::string> question = chat.dialogue.last_question();
  if (!question) return error("/edit: there is no message to edit yet");
  if (text.empty() && !chat.interactive)
    return error("/edit: needs the new TEXT where no one can edit the old");
  if (text.empty()) {
    chat.draft = *question;
    return ChatStep::kRead;
  }
  chat.dialogue.forget_answer();
  chat.dialogue.ask(text);
  return ChatStep::kAnswer;
}

Result<ChatStep> drop(Chat& chat, const std::string&, const Terminal& terminal) {
  if (!chat.dialogue.drop_oldest_turn())
    return error(
        "/drop: there is no turn before the last message; /edit it shorter, or start with a larger -c");
  terminal.note(
      fmt::format("the oldest turn is forgotten; {} messages are left", chat.dialogue.messages().size()));
  return chat.dialogue.awaits_answer() ? ChatStep::kAnswer : ChatStep::kRead;
}

Result<ChatStep> save(Chat& chat, const std::string& path, const Terminal& terminal) {
  if (path.empty()) return error("/save: needs a FILE to write to");
  EIDER_TRY_STATUS(save_messages(path, chat.dialogue.messages()).context("/save"));
  terminal.note(fmt::format("{} messages saved to {}", chat.dialogue.messages().size(), path));
  return ChatStep::kRead;
}

Result<ChatStep> load(Chat& chat, const std::string& path, const Terminal& terminal) {
  if (path.empty()) return error("/load: needs a FILE to read");
  EIDER_TRY(std::vector<ChatMessage> messages, load_messages(path).context("/load"));
  EIDER_TRY(const int foreign,
            chat.dialogue.restore(std::move(messages)).context(fmt::format("/load: {}", path)));
  chat.last_turn.reset();
  if (foreign > 0)
    terminal.warning(
        fmt::format("{} answers came from another model: their text is tokenised anew", foreign));
  terminal.note(fmt::format("{} messages loaded", chat.dialogue.messages().size()));
  if (chat.dialogue.awaits_answer()) terminal.note("the last one awaits its answer: /regen answers it");
  return ChatStep::kRead;
}

Result<ChatStep> show_statistics(Chat& chat, const std::string&, const Terminal& terminal) {
  terminal.note(chat.last_turn ? describe(*chat.last_turn, chat.dialogue.max_context()) : "no answer yet");
  terminal.note(fmt::format("seed: {}; {} messages", *chat.sampling.seed, chat.dialogue.messages().size()));
  return ChatStep::kRead;
}

// The settings are the flags of the command line, by the names and rules that they have there.
Result<ChatStep> set(Chat& chat, const std::string& argument, const Terminal& terminal) {
  if (argument.empty()) {
    std::string text;
    for (const Setting& setting : chat_settings(chat.sampling, chat.limits.max_tokens))
      text += help_line("  " + setting.name, setting.help, 21);
    terminal.note(fmt::format("{}The seed is {} now.", text, *chat.sampling.seed));
    return ChatStep::kRead;
  }
  const std::size_t name_end = argument.find_first_of(" =");
  if (name_end == std::string::npos) return error("/set: {} needs a value, as in /set temp 0.5", argument);
  std::string name = argument.substr(0, name_end);
  name.erase(0, name.find_first_not_of('-'));
  const std::string value(trimmed(std::string_view(argument).substr(name_end + 1)));
  EIDER_TRY_STATUS(change_setting(name, value, chat.sampling, chat.limits.max_tokens).context("/set"));
  return ChatStep::kRead;
}

Result<ChatStep> leave(Chat&, const std::string&, const Terminal&) {
  return ChatStep::kLeave;
}

}  // namespace

bool is_chat_command(std::string& line) {
  if (line.starts_with("//")) {
    line.erase(0, 1);
    return false;
  }
  return line.starts_with('/');
}

Result<ChatStep> run_chat_command(std::string_view line, Chat& chat, const Terminal& terminal) {
  const std::string_view name = line.substr(0, line.find_first_of(" \t\n"));
  const auto* command = std::ranges::find(kCommands, name, &Command::name);
  if (command == kCommands.end())
    return error("{} is no command; /help lists them, and //... sends a message that begins with a slash",
                 name);
  return command->handle(chat, std::string(trimmed(line.substr(name.size()))), terminal);
}

std::string describe(const Turn& turn, std::int64_t max_context) {
  return fmt::format(
      "turn {}: {} prompt tokens, {} kept, {} prefilled ({:.1f} tok/s, TTFT {:.0f} ms)\n"
      "answer: {} tokens at {:.1f} tok/s; {}\n"
      "context: {} of {} tokens",
      turn.number, turn.prompt_tokens, turn.kept, turn.prefilled, turn.timing.prompt_tok_s,
      turn.timing.ttft_ms, turn.generated, turn.timing.decode_tok_s, finish_reason_name(turn.finish_reason),
      turn.context_used, max_context);
}

}  // namespace eider
