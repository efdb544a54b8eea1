// Runs the real program as a user would, and looks at what it says, how it ends and what it leaves behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tessera::testing {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// The program under test: TESSERA_BINARY, else this build's.
std::string tessera_binary();
bool has_mpirun();

bool contains(const std::string& text, const std::string& part);

// One run of `tessera launch`. Its output goes to files in its own folder; its processes carry a mark in their
// environment, by which they are found.
class LaunchRun {
 public:
  // `prefix`: words before the program, that is, another program that starts it.
  explicit LaunchRun(Words launch_arguments, const Variables& variables = {}, const Words& prefix = {});
  ~LaunchRun();  // ends what is left
  LaunchRun(const LaunchRun&) = delete;
  LaunchRun& operator=(const LaunchRun&) = delete;

  void signal(int number) const;
  // The exit status as a shell reports it; after `limit`, fails the test and kills the run.
  int wait(std::chrono::seconds limit = std::chrono::seconds(30));

  std::string out() const;
  std::string err() const;
  // Waits until the ranks have written `text` `count` times to stdout; fails the test after ten seconds.
  void wait_for_output(const std::string& text, int count = 1) const;
  // The launcher, minders, ranks and what they started, except zombies.
  std::vector<pid_t> processes() const;
  // True if none is left within `limit`.
  bool is_gone(std::chrono::milliseconds limit) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::string mark_;
  pid_t pid_ = -1;
};

// Words for a rank that runs one line of shell.
Words shell(Words flags, const std::string& line);

std::int64_t now_ms();
// Reads a time written by `date +%s%3N`.
std::int64_t read_ms(const std::filesystem::path& path);
int free_port();

}  // namespace tessera::testing
