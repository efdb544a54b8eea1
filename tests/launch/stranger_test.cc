// Another user of the host attacks the ports of a run, while its ranks meet and while they train: the run's losses and
// status are those of a run that nobody disturbed. The secret is nowhere to be seen.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "commands/train_command.h"
#include "run.h"

namespace tessera::testing {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Stranger : public TrainCommandTest {
 protected:
  // Two ranks; the second comes late, so that the meeting lasts.
  Words launch(const std::string& name, int port) const {
    const std::string line = "[ $RANK = 0 ] || sleep 2; exec " + tessera_binary() + " " +
                             gpt_words(name, "--num_train_epochs 60 --log_dir " + out(name + "-log"));
    return shell({"--starter", "mpirun", "--nproc_per_node", "2", "--master_port", std::to_string(port)}, line);
  }
};

TEST_F(Stranger, DoesNotChangeARun) {
  LaunchRun calm(launch("calm", free_port()));
  ASSERT_EQ(calm.wait(120s), 0) << calm.err();
  const int port = free_port();
  LaunchRun run(launch("disturbed", port));
  const std::string as_nobody = geteuid() == 0 ? "setpriv --reuid nobody --regid nogroup --clear-groups " : "";
  // The program may lie where nobody may look.
  const fs::path copy = fs::temp_directory_path() / ("tessera-stranger-" + std::to_string(getpid()));
  fs::copy_file(TESSERA_STRANGER, copy, fs::copy_options::overwrite_existing);
  fs::permissions(copy, fs::perms(0755));
  std::this_thread::sleep_for(500ms);
  const Ended stranger = run_shell(as_nobody + copy.string() + " 127.0.0.1 " + std::to_string(port) + " 8");
  fs::remove(copy);
  EXPECT_EQ(run.wait(120s), 0) << run.err();
  std::cout << stranger.output;
  EXPECT_TRUE(contains(stranger.output, "connections")) << stranger.output;
  EXPECT_FALSE(contains(stranger.output, " 0 connections")) << stranger.output;  // it was there during the meeting
  EXPECT_TRUE(contains(stranger.output, "longest word 40 bytes")) << stranger.output;  // a challenge, and nothing more
  const auto losses = logged(run.out(), "loss");
  EXPECT_GE(losses.size(), 100U);
  EXPECT_EQ(losses, logged(calm.out(), "loss"));
  EXPECT_LE(count_of(run.err(), "does not hold this job's secret"), 1) << run.err();
  EXPECT_LE(count_of(run.err(), "\n"), count_of(calm.err(), "\n") + 1) << run.err();
}

TEST_F(Stranger, FindsTheSecretNowhere) {
  const std::string secret = "5e1f5e1f5e1f5e1f5e1f5e1f5e1f5e1f0123456789abcdef0123456789abcdef";
  LaunchRun run(launch("secret", free_port()), {{"TESSERA_SECRET", secret}, {"TESSERA_LOG", "debug,all"}});
  // The ranks' secret is another one, made of it: any 64 digits.
  const std::regex shown("[0-9a-f]{64}");
  bool has_trained = false;
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!has_trained && std::chrono::steady_clock::now() < until) {
    has_trained = contains(run.out(), "'loss'");
    for (const pid_t pid : run.processes()) {
      const fs::path process = "/proc/" + std::to_string(pid);
      const std::string words = whole(process / "cmdline");
      EXPECT_FALSE(std::regex_search(words, shown)) << words;
      std::error_code ignored;
      const bool is_rank =
          fs::read_symlink(process / "exe", ignored).filename() == "tessera" && contains(words, "train");
      if (has_trained && is_rank) {
        EXPECT_FALSE(std::regex_search(whole(process / "environ"), shown)) << pid;
      }
    }
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_TRUE(has_trained);
  EXPECT_EQ(run.wait(120s), 0) << run.err();
  EXPECT_FALSE(std::regex_search(run.out() + run.err(), shown));
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_regular_file()) continue;
    ++num_files;
    const std::string text = whole(entry.path());
    EXPECT_FALSE(std::regex_search(text, shown)) << entry.path();
  }
  EXPECT_GT(num_files, 2);  // run.json, logs
}

}  // namespace
}  // namespace tessera::testing
