#include "launch/monitored_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "launch/host_resources.h"
#include "launch/wire.h"

namespace tessera {

namespace {

std::string find_command_program(const std::string& name) {
  try {
    return find_program(name, Environment::of_process());
  } catch (const UsageError& error) {
    throw CommandError(error.what(), name.find('/') != std::string::npos && is_there(name) ? 126 : 127);
  }
}

}  // namespace

MonitoredCommand::MonitoredCommand(std::vector<std::string> words)
    : words_(std::move(words)), program_(find_command_program(words_.front())) {}

void MonitoredCommand::start() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<char*> argv;
  for (std::string& word : words_) argv.push_back(word.data());
  argv.push_back(nullptr);
  Pipe errors;  // closed by exec; read until then
  pid_ = fork();
  if (pid_ < 0) throw Error(fmt::format("cannot start '{}': {}", words_.front(), std::strerror(errno)));
  if (pid_ == 0) {
    inbox_.restore_mask();
    execvp(program_.c_str(), argv.data());
    const int error = errno;
    (void)!write(errors.write_end.get(), &error, sizeof error);
    _exit(error == ENOENT ? 127 : 126);
  }
  errors.write_end.reset();
  int error = 0;
  if (read(errors.read_end.get(), &error, sizeof error) != sizeof error) return;
  waitpid(pid_, nullptr, 0);
  const char* more = error == ENOENT ? " (the file is there, but not the interpreter or loader that it names)" : "";
  throw CommandError(fmt::format("cannot start '{}': {}{}", words_.front(), std::strerror(error), more),
                     error == ENOENT ? 127 : 126);
}

int MonitoredCommand::wait() {
  for (;;) {
    pollfd ready{inbox_.fd(), POLLIN, 0};
    poll(&ready, 1, -1);
    while (const auto received = inbox_.next_received()) {
      if (received->signal != SIGCHLD && !received->is_from_terminal) kill(pid_, received->signal);
    }
    // Orphans too, or they would stay as zombies.
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == pid_) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace tessera
