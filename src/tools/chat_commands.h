// Chat commands: what a person may say to the program itself, lines that begin with a slash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/generation.h"
#include "tools/chat_dialogue.h"
#include "tools/flags.h"
#include "tools/terminal.h"

namespace eider {

/// A chat as it stands between two messages.
struct Chat {
  Dialogue dialogue;
  SamplingFlags sampling;  ///< its seed is always set
  GenerationLimits limits;
  bool interactive = false;
  std::optional<Turn> last_turn;
  std::string draft;  ///< the last message, when the next one is to be edited from it and to replace it
};

/// What follows a command.
enum class ChatStep : std::uint8_t { kRead, kAnswer, kLeave };

/// Whether `line` is a command; one that is not loses the slash that was doubled to say so.
bool is_chat_command(std::string& line);
/// Runs a command. Errors say what is wrong with it; the chat goes on.
Result<ChatStep> run_chat_command(std::string_view line, Chat& chat, const Terminal& terminal);

/// What an answer took: the lines of /stats and --verbose.
std::string describe(const Turn& turn, std::int64_t max_context);

}  // namespace eider
