#include "tools/chat_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/json_text.h"
#include "tools/input.h"

namespace eider {
namespace {

using Json = nlohmann::ordered_json;

std::string expand_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

Result<ChatMessage> to_message(const Json& entry) {
  if (!entry.is_object()) return error("is not an object");
  ChatMessage message;
  for (const auto& [key, text] : {std::pair{"role", &message.role}, std::pair{"content", &message.content}}) {
    const auto value = entry.find(key);
    if (value == entry.end() || !value->is_string()) return error("has no \"{}\" that is a string", key);
    *text = value->get<std::string>();
  }
  const auto ids = entry.find("ids");
  if (ids == entry.end()) return message;
  if (!ids->is_array()) return error("has \"ids\" that are not an array");
  for (const Json& id : *ids) {
    const bool fits =
        id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<TokenId>::max();
    if (!fits) return error("has \"ids\" that are not token ids");
    message.ids.push_back(id.get<TokenId>());
  }
  return message;
}

/// Writes a new file, down to the disk: a full one shows here and not when the old file is gone.
Status write_file(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int reason = errno;
  if (file != nullptr) std::fclose(file);
  return written ? Status() : error("cannot be written: {}", std::strerror(reason));
}

}  // namespace

Status save_messages(const std::string& path, const std::vector<ChatMessage>& messages) {
  Json array = Json::array();
  for (const ChatMessage& message : messages) {
    Json entry = {{"role", message.role}, {"content", message.content}};
    if (!message.ids.empty()) entry["ids"] = message.ids;
    array.push_back(std::move(entry));
  }
  const std::string text = to_json_text(array) + "\n";

  const std::string target = expand_home(path), part = target + ".part";
  Status written = write_file(part, text).context(target);
  if (written.ok() && std::rename(part.c_str(), target.c_str()) != 0)
    written = error("{}: cannot be written: {}", target, std::strerror(errno));
  if (!written.ok()) std::remove(part.c_str());
  return written;
}

Result<std::vector<ChatMessage>> load_messages(const std::string& path) {
  EIDER_TRY(const std::string text, read_file(expand_home(path)));
  const Json array = parse_ordered_json(text);
  if (!array.is_array()) return error("{}: is not a JSON array of messages", path);
  std::vector<ChatMessage> messages;
  for (const Json& entry : array) {
    Result<ChatMessage> message = to_message(entry);
    if (!message.ok())
      return error("{}: message {} {}", path, messages.size() + 1, message.error().message());
    messages.push_back(std::move(*message));
  }
  return messages;
}

}  // namespace eider
