#include "state/output_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "core/file.h"
#include "core/json.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

class Lock : public WithFolder {
 protected:
  std::string refusal(const Environment& environment = Environment(), milliseconds period = milliseconds(20)) {
    return message_of([&] { OutputLock(folder_, environment, period); });
  }
  // Of a run on another host.
  void write_foreign(std::int64_t beat, const std::string& job = "") {
    const Json json = {{"process_start", "1"},       {"id", "a"},  {"host", "elsewhere"}, {"process", 7},
                       {"process_space", "pid:[1]"}, {"job", job}, {"beat", beat}};
    write_file_atomically(OutputLock::file_in(folder_), json.dump());
  }
  const std::string free_ = "nothing was thrown";
};

TEST_F(Lock, AFolderIsOneRunsAndFreeAfterIt) {
  {
    const OutputLock first(folder_, Environment());
    const std::string message = refusal();
    EXPECT_TRUE(contains(message, "is in use by another run, process " + std::to_string(::getpid()))) << message;
    first.check();
  }
  EXPECT_FALSE(std::filesystem::exists(OutputLock::file_in(folder_)));
  EXPECT_EQ(refusal(), free_);
}

TEST_F(Lock, AKilledRunsIsTakenAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    new OutputLock(folder_, Environment());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(OutputLock::file_in(folder_)));
  EXPECT_EQ(refusal(Environment(), std::chrono::hours(1)), free_) << "without waiting";
}

TEST_F(Lock, OfAnotherHostIsWatched) {
  write_foreign(1);
  EXPECT_EQ(refusal(), free_) << "it stands still";
  std::atomic<bool> ends = false;
  write_foreign(1);
  std::jthread other([&] {
    for (std::int64_t beat = 2; !ends; ++beat) {
      write_foreign(beat);
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  const std::string message = refusal();
  ends = true;
  EXPECT_TRUE(contains(message, "process 7 on elsewhere")) << message;
}

TEST_F(Lock, ARequeuedJobTakesItsOwn) {
  write_foreign(1, "1234.0");
  const Environment again({{"SLURM_JOB_ID", "1234"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_EQ(refusal(again, std::chrono::hours(1)), free_);
  const OutputLock first(folder_, again);
  EXPECT_TRUE(contains(refusal(again), "in use by another run")) << "two steps of one start";
}

TEST_F(Lock, ARunThatLostItIsTold) {
  const OutputLock lock(folder_, Environment(), milliseconds(5));
  std::string told;
  // A beat that was under way when the other wrote may overwrite it once.
  for (int i = 0; i < 100 && told.empty(); ++i) {
    write_foreign(3);
    std::this_thread::sleep_for(milliseconds(50));
    try {
      lock.check();
    } catch (const UsageError& error) {
      told = error.what();
    }
  }
  EXPECT_TRUE(contains(told, "is now used by process 7 on elsewhere")) << told;
}

// Process numbers are used again; and a zombie holds nothing.
TEST_F(Lock, AnotherProcessOfTheSameNumberIsNotItsHolder) {
  std::string held;
  {
    const OutputLock lock(folder_, Environment());
    held = read_file(OutputLock::file_in(folder_));
  }
  Json json = parse_json(held, "lock");
  json["process_start"] = "1";
  write_file_atomically(OutputLock::file_in(folder_), json.dump());
  EXPECT_EQ(refusal(Environment(), std::chrono::hours(1)), free_);
}

TEST_F(Lock, ABrokenOneIsNone) {
  write_file_atomically(OutputLock::file_in(folder_), "{\"id\":");
  EXPECT_EQ(refusal(), free_);
}

}  // namespace
}  // namespace tessera
