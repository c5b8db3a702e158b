#include "tools/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace eider {
namespace {

constexpr std::size_t kMaxOutputBytes = std::size_t{64} << 20;

/// A pipe that only this process holds; ends are closed with it.
class Pipe {
 public:
  Pipe() { open_ = pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return open_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

  std::array<int, 2> ends_{-1, -1};
  bool open_;
};

/// posix_spawn with stdin, stdout and stderr set; 0, or the reason why not.
int spawn(const std::vector<std::string>& words, int out, int err, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);  // which main() ignores
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int problem = posix_spawn(&child, argv.front(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

/// Reads both pipes until the last writer has closed them.
Status collect(const Pipe& out, const Pipe& err, const InterruptGuard& interrupt,
               const bench::TimeLimit& limit, ProcessResult& result) {
  std::array<pollfd, 2> sources{pollfd{out.read_end(), POLLIN, 0}, pollfd{err.read_end(), POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  std::array<char, 65536> piece;
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    constexpr int kMilliseconds = 100;  // how late Ctrl-C and the limit may be noticed
    const int ready = poll(sources.data(), sources.size(), kMilliseconds);
    if (interrupt.interrupted()) return error("interrupted");
    if (limit.over()) return error("its time is over");
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      const ssize_t count = read(sources[i].fd, piece.data(), piece.size());
      if (count > 0)
        texts[i]->append(piece.data(), static_cast<std::size_t>(count));
      else if (count == 0 || errno != EINTR)
        sources[i].fd = -1;  // poll() passes it over
      if (texts[i]->size() > kMaxOutputBytes) return error("writes more than {} MiB", kMaxOutputBytes >> 20);
    }
  }
  return {};
}

}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& words, const InterruptGuard& interrupt,
                                  const bench::TimeLimit& limit) {
  Pipe out, err;
  if (!out.open() || !err.open()) return error("no pipe to be had: {}", std::strerror(errno));
  pid_t child = 0;
  if (const int problem = spawn(words, out.write_end(), err.write_end(), child); problem != 0)
    return error("{}: cannot be started: {}", words.front(), std::strerror(problem));
  out.close_write_end();
  err.close_write_end();

  ProcessResult result;
  const Status collected = collect(out, err, interrupt, limit, result);
  if (!collected.ok()) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  EIDER_TRY_STATUS(collected);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace eider
