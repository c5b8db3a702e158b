// ChatInput: messages from the person at the keyboard, edited with libedit, or plain lines where stdin or
// stderr is no terminal. The one file that knows libedit.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "tools/terminal.h"

namespace eider {

class ChatInput {
 public:
  /// Looks at stdin and stderr. Edited messages are remembered from run to run in `history_path`; empty: only
  /// in this run. Chats that run at the same time add to it by turns. `terminal` must outlive this object.
  ChatInput(std::string history_path, const Terminal& terminal);
  ~ChatInput();
  ChatInput(const ChatInput&) = delete;
  ChatInput& operator=(const ChatInput&) = delete;

  /// Whether there is a person who edits, as opposed to a script.
  bool interactive() const;

  enum class Event {
    kMessage,
    kInterrupt,  ///< Ctrl-C on an empty line or on a draft (elsewhere it only empties the line)
    kEnd         ///< Ctrl-D, the end of the file
  };
  struct Input {
    Event event;
    std::string text;  ///< may hold several lines; without the last newline
  };
  /// Waits for the next message. `draft` stands in the line already (interactively). A backslash before the
  /// end of a line continues the message on the next one. Fails where a message is longer than 16 MiB.
  Result<Input> read(const std::string& draft = {});

 private:
  class Editor;
  std::unique_ptr<Editor> editor_;  // null: plain lines
};

/// Where the history is kept by default: $XDG_STATE_HOME/eider/chat_history, else
/// ~/.local/state/eider/chat_history; empty where neither variable is set.
std::string default_history_path();

}  // namespace eider
