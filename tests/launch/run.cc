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

#include "core/host.h"

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

StartedRun::StartedRun(Words command, const Variables& variables) {
  std::string name = (fs::temp_directory_path() / "tessera-test-XXXXXX").string();
  folder_ = mkdtemp(name.data());
  mark_ = "TESSERA_TEST_MARK=" + folder_.string();
  pid_ = fork();
  if (pid_ != 0) return;
  // Whoever started the tests may ignore some signals, as `&` in a script does.
  for (int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) std::signal(number, SIG_DFL);
  setenv("TESSERA_TEST_MARK", folder_.c_str(), 1);
  setenv("TEST_FOLDER", folder_.c_str(), 1);
  // Launchers of several nodes share a secret by a file: not by the one of whoever runs the tests.
  const std::string secret = (fs::temp_directory_path() / ("tessera-test-secret-" + std::to_string(getuid()))).string();
  setenv("TESSERA_SECRET_FILE", secret.c_str(), 1);
  for (const auto& [variable, value] : variables) setenv(variable.c_str(), value.c_str(), 1);
  dup2(open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDOUT_FILENO);
  dup2(open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644), STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

StartedRun::~StartedRun() {
  for (pid_t process : processes()) kill(process, SIGKILL);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  fs::remove_all(folder_);
}

void StartedRun::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

int StartedRun::wait(std::chrono::seconds limit) {
  const auto until = Clock::now() + limit;
  while (!status()) {
    if (Clock::now() > until) {
      ADD_FAILURE() << "still running; stderr:\n" << err();
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
      return 128 + SIGKILL;
    }
    std::this_thread::sleep_for(milliseconds(5));
  }
  return *status_;
}

std::optional<int> StartedRun::status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    pid_ = -1;
  }
  return status_;
}

std::string StartedRun::out() const {
  return read_all(folder_ / "out");
}
std::string StartedRun::err() const {
  return read_all(folder_ / "err");
}

void StartedRun::wait_for_output(const std::string& text, int count) const {
  const auto until = Clock::now() + std::chrono::seconds(60);
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

std::vector<pid_t> StartedRun::processes() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    // Between fork and exec a process of this test does not have the mark yet: a later call finds it.
    if (pid > 0 && contains(read_all(entry.path() / "environ"), mark_) && !has_ended(pid)) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> StartedRun::processes_named(const std::string& name) const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes()) {
    std::error_code ignored;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored);
    if (contains(program.filename().string(), name)) found.push_back(pid);
  }
  return found;
}

pid_t StartedRun::mpirun() const {
  for (const char* name : {"orterun", "mpirun", "prterun"}) {  // Open MPI's own names of it
    const auto found = processes_named(name);
    if (!found.empty()) return found.front();
  }
  return -1;
}

bool StartedRun::is_gone(milliseconds limit) const {
  const auto until = Clock::now() + limit;
  while (!processes().empty()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

LaunchRun::LaunchRun(const Words& launch_arguments, const Variables& variables, const Words& prefix)
    : StartedRun(
          [&] {
            Words words = prefix;
            words.insert(words.end(), {tessera_binary(), "launch"});
            words.insert(words.end(), launch_arguments.begin(), launch_arguments.end());
            return words;
          }(),
          variables) {}

FaultOutcome run_to_fault(int num_ranks, const Words& program) {
  Words arguments = {"--starter", "mpirun", "--nproc_per_node", std::to_string(num_ranks)};
  arguments.insert(arguments.end(), program.begin(), program.end());
  LaunchRun run(arguments);
  FaultOutcome outcome;
  outcome.status = run.wait(std::chrono::seconds(60));
  if (fs::exists(run.folder() / "died")) {
    outcome.seconds = static_cast<double>(now_ms() - read_ms(run.folder() / "died")) / 1000;
  }
  outcome.text = run.out() + run.err();
  outcome.is_gone = run.is_gone(milliseconds(100));
  return outcome;
}

void expect_named(const FaultOutcome& outcome, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  for (const std::string& part : parts) {
    EXPECT_TRUE(contains(outcome.text, part)) << part << "\n--- in:\n" << outcome.text;
  }
  EXPECT_TRUE(outcome.is_gone);
}

Words shell(Words flags, const std::string& line) {
  flags.insert(flags.end(), {"sh", "-c", line});
  return flags;
}

std::string last_words(int status, const std::string& message, bool is_consequence, std::int64_t time_ms) {
  return R"(printf '{"rank":%s,"host":"h","message":"%s","exit_status":%s,"time_ms":%s,"is_consequence":%s}' $RANK ')" +
         message + "' " + std::to_string(status) + " " + std::to_string(time_ms) +
         (is_consequence ? " true" : " false") + " > $TESSERA_FAILURE_FILE";
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
