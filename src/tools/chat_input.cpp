#include "tools/chat_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace eider {
namespace {

constexpr int kHistoryLength = 1000;
constexpr std::size_t kMaxMessage = std::size_t{16} << 20;  // bytes, or characters while they are pasted
constexpr std::string_view kPrompt = "> ";
// Terminals that know bracketed paste put these around what is pasted, so that its newlines are not Enter
// keys.
constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";
// Keys that no keyboard has, pushed by this file so that libedit does what it cannot be called for.
constexpr const wchar_t *kDraftKey = L"\033[900~", *kSendKey = L"\033[901~";

Error too_long() {
  return error("the message is longer than {} MiB", kMaxMessage >> 20);
}

/// One line of stdin without its newline; nothing at the end of the file.
Result<std::string> read_line(bool& ended) {
  std::string line;
  int byte = 0;
  while ((byte = std::getc(stdin)) != EOF && byte != '\n') {
    if (line.size() == kMaxMessage) return too_long();
    line.push_back(static_cast<char>(byte));
  }
  ended = byte == EOF && line.empty();
  return line;
}

Result<ChatInput::Input> read_plain() {
  std::string text;
  for (;;) {
    if (isatty(STDIN_FILENO) == 1) std::fprintf(stderr, "%s", kPrompt.data());
    bool ended = false;
    EIDER_TRY(const std::string line, read_line(ended));
    if (ended && text.empty()) return ChatInput::Input{ChatInput::Event::kEnd, {}};
    text += line;
    if (text.size() > kMaxMessage) return too_long();
    if (ended || !text.ends_with('\\')) return ChatInput::Input{ChatInput::Event::kMessage, std::move(text)};
    text.back() = '\n';
  }
}

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

/// A line editor with a history. Keys reach it as characters, Ctrl-C too, while it reads; outside of read()
/// the terminal is as it was.
class ChatInput::Editor {
 public:
  Editor(std::string history_path, const Terminal& terminal);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  Result<Input> read(const std::string& draft);

 private:
  using Key = unsigned char(EditLine*, wint_t);
  void bind_keys();
  void load_history();
  void remember(const std::string& text);
  Status append_to_history_file(const std::string& text);
  static Editor& self(EditLine* edit_line);
  static Key on_interrupt, on_suspend, on_enter, on_newline, on_paste, on_draft;
  static const wchar_t* prompt(EditLine* edit_line);

  std::string history_path_;  // empty: none, or none any more
  const Terminal* terminal_;
  bool colors_ = shows_colors(STDERR_FILENO);
  EditLine* edit_line_;
  History* history_;
  std::wstring draft_;
  bool interrupted_ = false;
};

ChatInput::Editor::Editor(std::string history_path, const Terminal& terminal)
    : history_path_(std::move(history_path)),
      terminal_(&terminal),
      edit_line_(el_init("eider", stdin, stderr, stderr)),
      history_(history_init()) {
  if (edit_line_ == nullptr || history_ == nullptr) throw std::bad_alloc();
  HistEvent event;
  history(history_, &event, H_SETSIZE, kHistoryLength);
  history(history_, &event, H_SETUNIQUE, 1);
  load_history();
  el_set(edit_line_, EL_HIST, history, history_);
  el_wset(edit_line_, EL_CLIENTDATA, this);
  el_wset(edit_line_, EL_PROMPT_ESC, &Editor::prompt, L'\1');
  el_wset(edit_line_, EL_SIGNAL, 1);  // redraws after a change of the window's size
  bind_keys();
}

ChatInput::Editor::~Editor() {
  history_end(history_);
  el_end(edit_line_);
}

void ChatInput::Editor::bind_keys() {
  constexpr const wchar_t* kEnd = nullptr;
  const auto bind = [this](const wchar_t* name, const wchar_t* help, Key* function,
                           std::initializer_list<const wchar_t*> keys) {
    el_wset(edit_line_, EL_ADDFN, name, help, function);
    for (const wchar_t* key : keys) el_wset(edit_line_, EL_BIND, key, name, kEnd);
  };
  el_wset(edit_line_, EL_EDITOR, L"emacs");
  el_wset(edit_line_, EL_SETTY, L"-d", L"-isig", kEnd);
  el_wset(edit_line_, EL_BIND, L"^R", L"em-inc-search-prev", kEnd);
  bind(L"eider-interrupt", L"Empties the line, or interrupts", on_interrupt, {L"^C"});
  bind(L"eider-suspend", L"Suspends the program", on_suspend, {L"^Z"});
  bind(L"eider-enter", L"Ends the message, or after a backslash the line", on_enter, {L"^M", L"^J"});
  el_wset(edit_line_, EL_BIND, kSendKey, L"ed-newline", kEnd);
  bind(L"eider-newline", L"Begins a new line", on_newline, {L"\\e^M", L"\\e^J"});
  bind(L"eider-paste", L"Inserts what is pasted", on_paste, {L"\\e[200~"});
  bind(L"eider-draft", L"Inserts the draft", on_draft, {kDraftKey});
  el_wset(edit_line_, EL_BIND, L"\\e[3~", L"ed-delete-next-char", kEnd);
  for (const wchar_t* key : {L"\\e[H", L"\\e[1~", L"\\eOH"})
    el_wset(edit_line_, EL_BIND, key, L"ed-move-to-beg", kEnd);
  for (const wchar_t* key : {L"\\e[F", L"\\e[4~", L"\\eOF"})
    el_wset(edit_line_, EL_BIND, key, L"ed-move-to-end", kEnd);
}

ChatInput::Editor& ChatInput::Editor::self(EditLine* edit_line) {
  void* editor = nullptr;
  el_wget(edit_line, EL_CLIENTDATA, &editor);
  return *static_cast<Editor*>(editor);
}

const wchar_t* ChatInput::Editor::prompt(EditLine* edit_line) {
  return self(edit_line).colors_ ? L"\1\033[1;32m\1>\1\033[0m\1 " : L"> ";
}

unsigned char ChatInput::Editor::on_interrupt(EditLine* edit_line, wint_t /*key*/) {
  self(edit_line).interrupted_ = true;
  return CC_EOF;
}

unsigned char ChatInput::Editor::on_suspend(EditLine* edit_line, wint_t /*key*/) {
  write_stderr(kPasteOff);
  el_wset(edit_line, EL_PREP_TERM, 0);
  std::raise(SIGTSTP);
  el_wset(edit_line, EL_PREP_TERM, 1);
  write_stderr(kPasteOn);
  return CC_REDISPLAY;
}

unsigned char ChatInput::Editor::on_enter(EditLine* edit_line, wint_t key) {
  const LineInfoW* line = el_wline(edit_line);
  const bool continues =
      line->cursor == line->lastchar && line->cursor != line->buffer && line->cursor[-1] == L'\\';
  if (continues) {
    el_wdeletestr(edit_line, 1);
    return on_newline(edit_line, key);
  }
  el_wpush(edit_line, kSendKey);
  return CC_NORM;
}

unsigned char ChatInput::Editor::on_newline(EditLine* edit_line, wint_t /*key*/) {
  return el_winsertstr(edit_line, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char ChatInput::Editor::on_paste(EditLine* edit_line, wint_t /*key*/) {
  std::wstring text;
  wchar_t character = 0;
  // The end's first character stands in it once, so that a mismatch can only begin it anew.
  for (std::size_t matched = 0; matched < kPasteEnd.size() && el_wgetc(edit_line, &character) == 1;) {
    matched =
        character == kPasteEnd[matched] ? matched + 1 : static_cast<std::size_t>(character == kPasteEnd[0]);
    if (text.size() <= kMaxMessage) text.push_back(character == L'\r' ? L'\n' : character);
  }
  if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
  return el_winsertstr(edit_line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char ChatInput::Editor::on_draft(EditLine* edit_line, wint_t /*key*/) {
  const std::wstring draft = std::exchange(self(edit_line).draft_, {});
  return el_winsertstr(edit_line, draft.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

Result<ChatInput::Input> ChatInput::Editor::read(const std::string& draft) {
  if (!draft.empty()) {
    draft_.resize(draft.size());
    const std::size_t length = std::mbstowcs(draft_.data(), draft.c_str(), draft_.size());
    draft_.resize(length == static_cast<std::size_t>(-1) ? 0 : length);
    el_wpush(edit_line_, kDraftKey);
  }
  for (;;) {
    interrupted_ = false;
    int length = 0;
    el_wset(edit_line_, EL_PREP_TERM, 1);  // before the prompt shows: keys are the editor's from then on
    write_stderr(kPasteOn);
    const char* line = el_gets(edit_line_, &length);
    write_stderr(kPasteOff);
    if (interrupted_) {
      const LineInfo* edited = el_line(edit_line_);
      const bool empty = edited->buffer == edited->lastchar;
      write_stderr("^C\n");
      if (empty || !draft.empty()) return Input{Event::kInterrupt, {}};
      continue;
    }
    if (line == nullptr || length <= 0) {
      write_stderr("\n");
      return Input{Event::kEnd, {}};
    }
    std::string text(line, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    if (text.size() > kMaxMessage) return too_long();
    remember(text);
    return Input{Event::kMessage, std::move(text)};
  }
}

/// Files only grow while chats run; one that has become long is written anew here.
void ChatInput::Editor::load_history() {
  HistEvent event;
  if (history_path_.empty()) return;
  const int entries = history(history_, &event, H_LOAD, history_path_.c_str());
  if (entries <= 2 * kHistoryLength) return;
  const std::string part = history_path_ + ".part";
  if (history(history_, &event, H_SAVE, part.c_str()) < 0 ||
      std::rename(part.c_str(), history_path_.c_str()) != 0)
    std::remove(part.c_str());
}

/// Saved at once, so that nothing is lost however the program ends. A history that cannot be saved is no
/// reason to stop talking.
void ChatInput::Editor::remember(const std::string& text) {
  if (text.find_first_not_of(" \n") == std::string::npos) return;
  HistEvent event;
  history(history_, &event, H_ENTER, text.c_str());
  if (history_path_.empty()) return;
  const Status saved = append_to_history_file(text);
  if (saved.ok()) return;
  terminal_->warning(fmt::format("{} (messages are remembered until the end)", saved.error().message()));
  history_path_.clear();
}

/// Appends one entry, for the owner's eyes only.
Status ChatInput::Editor::append_to_history_file(const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(history_path_).parent_path(), ignored);
  const int descriptor =
      open(history_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  std::FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "ab");
  // A history of this entry alone: libedit saves whole ones. It begins an empty file with its mark, and tells
  // by the position whether it is empty.
  const std::unique_ptr<History, decltype(&history_end)> entry(history_init(), history_end);
  HistEvent event;
  const bool written = file != nullptr && flock(descriptor, LOCK_EX) == 0 &&
                       std::fseek(file, 0, SEEK_END) == 0 &&
                       history(entry.get(), &event, H_SETSIZE, 1) >= 0 &&
                       history(entry.get(), &event, H_ENTER, text.c_str()) >= 0 &&
                       history(entry.get(), &event, H_SAVE_FP, file) >= 0 && std::fflush(file) == 0;
  const int reason = errno;
  if (file != nullptr) std::fclose(file);
  return written ? Status() : error("{}: cannot be written: {}", history_path_, std::strerror(reason));
}

ChatInput::ChatInput(std::string history_path, const Terminal& terminal) {
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDERR_FILENO)) return;
  // libedit and the C library take characters apart as the locale says; a "C" locale would break all but
  // ASCII.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  editor_ = std::make_unique<Editor>(std::move(history_path), terminal);
}

ChatInput::~ChatInput() = default;

bool ChatInput::interactive() const {
  return editor_ != nullptr;
}

Result<ChatInput::Input> ChatInput::read(const std::string& draft) {
  return editor_ ? editor_->read(draft) : read_plain();
}

std::string default_history_path() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty())
    return state + "/eider/chat_history";
  if (const std::string home = variable("HOME"); !home.empty())
    return home + "/.local/state/eider/chat_history";
  return {};
}

}  // namespace eider
