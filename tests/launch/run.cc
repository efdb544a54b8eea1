#include "run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_zombie(const fs::path& process) {
  const std::string stat = read_all(process / "stat");
  const auto after_name = stat.rfind(')');
  return after_name == std::string::npos || stat.size() < after_name + 3 || stat[after_name + 2] == 'Z';
}

}  // namespace

std::string tessera_binary() {
  const char* given = std::getenv("TESSERA_BINARY");
  return given != nullptr ? given : TESSERA_BINARY_OF_BUILD;
}

bool has_mpirun() {
  return std::system("command -v mpirun >/dev/null 2>&1") == 0;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

LaunchRun::LaunchRun(Words launch_arguments, const Variables& variables, const Words& prefix) {
  std::string name = (fs::temp_directory_path() / "tessera-test-XXXXXX").string();
  folder_ = mkdtemp(name.data());
  mark_ = "TESSERA_TEST_MARK=" + folder_.string();
  Words words = prefix;
  words.insert(words.end(), {tessera_binary(), "launch"});
  words.insert(words.end(), launch_arguments.begin(), launch_arguments.end());
  pid_ = fork();
  if (pid_ != 0) return;
  // Whoever started the tests may ignore some signals, as `&` in a script does.
  for (int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(number, SIG_DFL);
  setenv("TESSERA_TEST_MARK", folder_.c_str(), 1);
  setenv("TEST_FOLDER", folder_.c_str(), 1);
  for (const auto& [variable, value] : variables) setenv(variable.c_str(), value.c_str(), 1);
  dup2(open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDOUT_FILENO);
  dup2(open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

LaunchRun::~LaunchRun() {
  for (pid_t process : processes()) kill(process, SIGKILL);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  fs::remove_all(folder_);
}

void LaunchRun::signal(int number) const {
  kill(pid_, number);
}

int LaunchRun::wait(std::chrono::seconds limit) {
  const auto until = Clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > until) {
      ADD_FAILURE() << "still running; stderr:\n" << err();
      kill(pid_, SIGKILL);
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string LaunchRun::out() const {
  return read_all(folder_ / "out");
}
std::string LaunchRun::err() const {
  return read_all(folder_ / "err");
}

void LaunchRun::wait_for_output(const std::string& text, int count) const {
  const auto until = Clock::now() + std::chrono::seconds(10);
  for (;;) {
    const std::string seen = out();
    int found = 0;
    for (auto at = seen.find(text); at != std::string::npos; at = seen.find(text, at + 1)) ++found;
    if (found >= count) return;
    if (Clock::now() > until) {
      ADD_FAILURE() << "'" << text << "' was not written " << count << " times; stdout:\n"
                    << seen << "stderr:\n"
                    << err();
      return;
    }
    std::this_thread::sleep_for(milliseconds(10));
  }
}

std::vector<pid_t> LaunchRun::processes() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    // Between fork and exec a process of this test does not have the mark yet: a later call finds it.
    if (pid > 0 && contains(read_all(entry.path() / "environ"), mark_) && !is_zombie(entry.path()))
      found.push_back(pid);
  }
  return found;
}

bool LaunchRun::is_gone(milliseconds limit) const {
  const auto until = Clock::now() + limit;
  while (!processes().empty()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

Words shell(Words flags, const std::string& line) {
  flags.insert(flags.end(), {"sh", "-c", line});
  return flags;
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::int64_t read_ms(const fs::path& path) {
  return std::atoll(read_all(path).c_str());
}

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace tessera::testing
