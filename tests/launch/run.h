// Runs the real program as a user would, and looks at what it says, how it ends and what it leaves behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera::testing {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// The program under test: TESSERA_BINARY, else this build's.
std::string tessera_binary();
bool has_mpirun();

// For what happens at once: long enough for a machine whose processor or disk serves others for seconds, and shorter
// than the limits (30 s and more) at which a run would end by itself. How long it really takes, `./x soak` shows.
inline constexpr std::chrono::seconds kSoon{25};

bool contains(const std::string& text, const std::string& part);

// A command that is running. Its output goes to files in its own folder; its processes carry a mark in their
// environment, by which they are found.
class StartedRun {
 public:
  explicit StartedRun(Words command, const Variables& variables = {});
  ~StartedRun();  // ends what is left
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  void signal(int number) const;
  // The exit status as a shell reports it; nothing while it runs.
  std::optional<int> status();
  // The exit status; after `limit`, fails the test and kills the run.
  int wait(std::chrono::seconds limit = std::chrono::seconds(120));

  std::string out() const;
  std::string err() const;
  // Waits until the ranks have written `text` `count` times to stdout; fails the test after a minute.
  void wait_for_output(const std::string& text, int count = 1) const;
  // The command's own process and all that it started, except zombies.
  std::vector<pid_t> processes() const;
  // Those of them whose program has this name.
  std::vector<pid_t> processes_named(const std::string& name) const;
  pid_t mpirun() const;  // -1: none is running
  // True if none is left within `limit`.
  bool is_gone(std::chrono::milliseconds limit) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string mark_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// One run of `tessera launch`. `prefix`: words before the program, that is, another program that starts it.
class LaunchRun : public StartedRun {
 public:
  explicit LaunchRun(const Words& launch_arguments, const Variables& variables = {}, const Words& prefix = {});
};

// How a run of MPI ranks ended, one of which was told to fail.
struct FaultOutcome {
  int status = 0;
  std::string text;
  double seconds = -1;  // since the rank failed; -1: it did not say when
  bool is_gone = false;
};
FaultOutcome run_to_fault(int num_ranks, const Words& program);
// It ended with this status, said all of these parts and left no process.
void expect_named(const FaultOutcome& outcome, int status, const std::vector<std::string>& parts);

// Words for a rank that runs one line of shell.
Words shell(Words flags, const std::string& line);
// A shell command by which a rank leaves its last words to the launcher. `time_ms`: 0 is when it ends.
std::string last_words(int status, const std::string& message, bool is_consequence, std::int64_t time_ms = 0);

std::int64_t now_ms();
// Reads a time written by `date +%s%3N`.
std::int64_t read_ms(const std::filesystem::path& path);
int free_port();

}  // namespace tessera::testing
