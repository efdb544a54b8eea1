#include "core/command_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

extern char** environ;

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// Reads both pipes until they are closed. Returns false at the deadline.
bool read_until_closed(Pipe& out, Pipe& err, Clock::time_point deadline, CommandOutput& output) {
  std::array<pollfd, 2> pipes = {pollfd{out.read_end.get(), POLLIN, 0}, pollfd{err.read_end.get(), POLLIN, 0}};
  std::array<std::string*, 2> texts = {&output.out, &output.err};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    if (poll(pipes.data(), pipes.size(), static_cast<int>(left)) < 0 && errno != EINTR) return false;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t num_bytes = read(pipes[i].fd, buffer.data(), buffer.size());
      if (num_bytes > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(num_bytes));
      } else if (num_bytes == 0 || errno != EINTR) {
        pipes[i].fd = -1;
      }
    }
  }
  return true;
}

pid_t spawn_with_pipes(const std::vector<std::string>& words, Pipe& out, Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end.get(), STDERR_FILENO);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return -1;
  if (error != 0) throw Error(fmt::format("cannot start '{}': {}", words.front(), std::strerror(error)));
  return pid;
}

}  // namespace

CommandOutput command_output(const std::vector<std::string>& words, std::chrono::seconds limit) {
  CommandOutput output;
  Pipe out, err;
  const pid_t pid = spawn_with_pipes(words, out, err);
  if (pid < 0) {
    output.status = 127;
    output.err = "there is no such program in the PATH";
    return output;
  }
  out.write_end.reset();
  err.write_end.reset();
  const bool has_ended = read_until_closed(out, err, Clock::now() + limit, output);
  if (!has_ended) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_ended) throw Error(fmt::format("{} gave no answer within {} s", join(words, " "), limit.count()));
  output.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return output;
}

std::string successful_output(const std::vector<std::string>& words, std::chrono::seconds limit) {
  CommandOutput output = command_output(words, limit);
  if (output.status == 0) return std::move(output.out);
  throw Error(fmt::format("{} failed with status {}: {}", words.front(), output.status,
                          printable(trim(output.err.empty() ? output.out : output.err), 400)));
}

}  // namespace tessera
