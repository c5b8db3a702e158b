// Chat files: the messages of a chat as a JSON array of {"role", "content"}, answers with their "ids", so
// that other programs can read them and eider can go on where it was.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tools/chat_dialogue.h"

namespace eider {

/// Replaces the file at once or, on failure, not at all. A leading ~/ is the home folder, here and below.
Status save_messages(const std::string& path, const std::vector<ChatMessage>& messages);
/// Errors name the file and the message that is wrong.
Result<std::vector<ChatMessage>> load_messages(const std::string& path);

}  // namespace eider
