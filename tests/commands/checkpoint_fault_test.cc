// What surrounds a run goes wrong while it saves: nothing that was complete is lost, and the reason is named.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "commands/train_command.h"
#include "core/file.h"
#include "core/host.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class CheckpointFault : public TrainCommandTest {
 protected:
  // A run that saves after each of many steps.
  std::string saving(const std::string& name, const std::string& more) const {
    return binary() + " " + gpt_words(name, "--num_train_epochs 100 --save_strategy steps --save_steps 1 " + more);
  }
  std::string model_of(const std::string& name) const { return read_file(folder_ / name / "model.safetensors"); }
};

// As a shell's words: until the file is there, or a minute has passed.
std::string wait_until(const std::string& file) {
  return fmt::format("for i in $(seq 600); do [ -e {} ] && break; sleep 0.1; done", file);
}

// A file system of its own with room for two checkpoints and a half.
TEST_F(CheckpointFault, AFullDiskNamesTheLastCompleteCheckpointWhichResumes) {
  if (run_shell("unshare -m mount -t tmpfs none /mnt").status != 0) GTEST_SKIP() << "needs the right to mount";
  ASSERT_EQ(gpt("size", "--max_steps 1 --save_strategy steps --save_steps 1").status, 0);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "size/checkpoint-1")) bytes += entry.file_size();
  fs::create_directories(folder_ / "disk");
  const auto on_disk = [&](const std::string& then) {
    return run_shell(
        fmt::format("unshare -m sh -c 'mount -t tmpfs -o size={} none {}; {}'", bytes * 5 / 2, out("disk"), then));
  };
  const Ended stopped = on_disk(fmt::format("{}; echo status $?; ls -A {}; mount -o remount,size=64m {}; {}",
                                            saving("disk/out", ""), out("disk/out"), out("disk"),
                                            saving("disk/out", "--max_steps 4 --resume_from_checkpoint latest")));
  EXPECT_TRUE(contains(stopped.output, "status 1\n")) << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "checkpoint-3 was not written; checkpoint-2 is complete")) << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "No space left on device")) << stopped.output;
  EXPECT_FALSE(contains(stopped.output, ".part\n")) << "a part stays:\n" << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "resuming after step 2 from")) << stopped.output;
  EXPECT_EQ(stopped.status, 0) << stopped.output;

  const Ended warned = on_disk(saving("disk/out", "--max_steps 4 --save_errors warn --save_total_limit 3") +
                               fmt::format("; echo status $?; cat {}/run.json", out("disk/out")));
  EXPECT_TRUE(contains(warned.output, "training goes on (--save_errors warn)")) << warned.output;
  EXPECT_TRUE(contains(warned.output, "status 0\n")) << warned.output;
  EXPECT_TRUE(contains(warned.output, "\"failed_saves\":")) << warned.output;

  // The best one is among those that could not be written: the best of the others is taken.
  const Ended best = on_disk(
      saving("disk/out", fmt::format("--num_train_epochs 6 --validation_file {} --max_eval_samples 2 "
                                     "--predict_with_generate false --eval_strategy epoch --save_strategy epoch "
                                     "--load_best_model_at_end --save_errors warn",
                                     kTestRows)) +
      fmt::format("; echo status $?; ls {}", out("disk/out")));
  EXPECT_TRUE(contains(best.output, "the best model is from ")) << best.output;
  EXPECT_TRUE(contains(best.output, "status 0\n")) << best.output;
  EXPECT_TRUE(contains(best.output, "model.safetensors\n")) << best.output;
}

TEST_F(CheckpointFault, LostRightsAreNamed) {
  std::string as_user;
  if (getuid() == 0) {
    as_user = "setpriv --reuid nobody --regid nogroup --clear-groups ";
    if (run_shell(as_user + binary() + " --version").status != 0) GTEST_SKIP() << "nobody cannot start the program";
    fs::permissions(folder_.path(), fs::perms::all);
  }
  const auto locked = [&](const std::string& name, const std::string& more) {
    return run_shell(fmt::format("{}{} & {}; chmod 555 {}; wait $!", as_user, saving(name, more),
                                 wait_until(out(name) + "/checkpoint-20"), out(name)));
  };
  const Ended ended = locked("out", "--save_steps 20");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(contains(ended.output, "was not written; checkpoint-")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Permission denied")) << ended.output;
  const Ended warned = locked("warned", "--save_steps 20 --max_steps 100 --save_errors warn");
  EXPECT_TRUE(contains(warned.output, "training goes on (--save_errors warn)")) << warned.output;
  EXPECT_TRUE(contains(warned.output, "'train_loss'")) << warned.output;
}

TEST_F(CheckpointFault, AFolderTakenAwayUnderTheRunIsNamed) {
  const Ended ended = run_shell(fmt::format("{} & {}; mv {} {}; wait $!", saving("out", ""),
                                            wait_until(out("out") + "/checkpoint-2"), out("out"), out("gone")));
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(contains(ended.output, "was not written")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "removed") || contains(ended.output, "No such file or directory")) << ended.output;
  EXPECT_EQ(gpt("gone", "--max_steps 1000 --resume_from_checkpoint latest --dry_run").status, 0);
}

// Neither the lock nor the choice and rotation of checkpoints go by the clock.
TEST_F(CheckpointFault, AClockSetBackChangesNothing) {
  const std::string words = "--max_steps 100 --save_strategy steps --save_steps 1 ", keeping = "--save_total_limit 2 ";
  ASSERT_EQ(gpt("whole", words + keeping).status, 0);
  run_shell(fmt::format("{} {} & {}; kill -KILL $!; wait $!", binary(), gpt_words("out", words),
                        wait_until(out("out") + "/checkpoint-3")));
  const Ended ended = run_shell(fmt::format("LD_PRELOAD={} SHIFT_CLOCK=-86400 {} {}", TESSERA_SHIFT_CLOCK, binary(),
                                            gpt_words("out", words + keeping + "--resume_from_checkpoint latest")));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_FALSE(contains(ended.output, "resuming after step 100 ")) << "it had not been killed";
  EXPECT_TRUE(model_of("out") == model_of("whole"));
  for (const char* kept : {"checkpoint-99", "checkpoint-100"}) EXPECT_TRUE(fs::exists(folder_ / "out" / kept)) << kept;
  for (const char* old : {"checkpoint-2", "checkpoint-98"}) EXPECT_FALSE(fs::exists(folder_ / "out" / old)) << old;
}

// As Slurm 23 and newer name the end of a job.
TEST_F(CheckpointFault, ATimeLimitThatIsNearSavesAndStops) {
  const std::string words = "--num_train_epochs 400 --save_strategy on_stop ";
  const Ended stopped = run_shell(fmt::format("SLURM_JOB_END_TIME={} {} {}", static_cast<long>(wall_seconds()) + 103,
                                              binary(), gpt_words("out", words + "--save_before_timeout 100s")));
  EXPECT_EQ(stopped.status, 138) << stopped.output;
  EXPECT_TRUE(contains(stopped.output, "the job's time limit is near: stopped after step")) << stopped.output;
  const Ended dry = gpt("out", words + "--resume_from_checkpoint latest --dry_run");
  EXPECT_EQ(dry.status, 0) << dry.output;
  const Ended elsewhere = gpt("elsewhere", "--max_steps 1 --save_before_timeout 1s");
  EXPECT_EQ(elsewhere.status, 0) << elsewhere.output;
  EXPECT_TRUE(contains(elsewhere.output, "this is no Slurm job with a time limit")) << elsewhere.output;
  const Ended late = run_shell(fmt::format("SLURM_JOB_END_TIME={} {} {}", static_cast<long>(wall_seconds()) + 50,
                                           binary(), gpt_words("late", "--max_steps 1 --save_before_timeout 100s")));
  EXPECT_EQ(late.status, 0) << late.output;
  EXPECT_TRUE(contains(late.output, "ignored: the job has only ")) << late.output;
}

}  // namespace
}  // namespace tessera
