// Checkpoints of `tessera train`: which of them stay, and what a run resumes from.
#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/file.h"
#include "core/text.h"
#include "train/train_command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class CheckpointCommand : public TrainCommandTest {
 protected:
  // The checkpoints in `name` by file name, hidden leftovers included.
  std::vector<std::string> checkpoints(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / name)) {
      const std::string file = entry.path().filename().string();
      if (file.find("checkpoint-") != std::string::npos) names.push_back(file);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  using Names = std::vector<std::string>;
};

TEST_F(CheckpointCommand, ThoseOfAnotherRunIntoTheFolderAreNeitherCountedNorGoneOnFrom) {
  const Ended older = gpt("out", "--max_steps 6 --save_strategy steps --save_steps 3");
  ASSERT_EQ(older.status, 0) << older.output;
  ASSERT_EQ(checkpoints("out"), (Names{"checkpoint-3", "checkpoint-6"}));
  const Ended newer = gpt("out", "--max_steps 2 --save_strategy steps --save_steps 1 --save_total_limit 1");
  ASSERT_EQ(newer.status, 0) << newer.output;
  EXPECT_EQ(checkpoints("out"), (Names{"checkpoint-2", "checkpoint-3", "checkpoint-6"}));
  EXPECT_EQ(record("out").at("checkpoints"), Json::array({out("out") + "/checkpoint-2"}));
  const Ended resumed = gpt("out",
                            "--max_steps 4 --save_strategy steps --save_steps 1 --save_total_limit 1 "
                            "--resume_from_checkpoint true");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "resuming after step 2 from")) << resumed.output;
  EXPECT_EQ(checkpoints("out"),
            (Names{"checkpoint-4", "checkpoint-6"}));  // its own 2 is gone, the older 3 was replaced
}

TEST_F(CheckpointCommand, TheBestOneIsKnownWhereverTheRunGoesOn) {
  // The highest loss is the first one.
  const std::string words = fmt::format(
      "--validation_file {} --max_eval_samples 4 --predict_with_generate false --eval_strategy steps --eval_steps 2 "
      "--save_strategy steps --save_steps 2 --load_best_model_at_end --metric_for_best_model loss --greater_is_better "
      "true --learning_rate 1e-2",
      kTestRows);
  const Ended first = gpt("old", words + " --max_steps 6");
  ASSERT_EQ(first.status, 0) << first.output;
  const Ended resumed = gpt("new", words + " --max_steps 8 --resume_from_checkpoint " + out("old") + "/checkpoint-6");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "the best model is from " + out("old") + "/checkpoint-2")) << resumed.output;
  EXPECT_EQ(read_file(folder_ / "new" / "model.safetensors"),
            read_file(folder_ / "old" / "checkpoint-2" / "model.safetensors"));
  // Moved as a whole and resumed there under a limit: the best one is known, and stays.
  fs::rename(folder_ / "old", folder_ / "moved");
  const Ended moved = gpt("moved", words + " --max_steps 8 --resume_from_checkpoint true --save_total_limit 1");
  ASSERT_EQ(moved.status, 0) << moved.output;
  EXPECT_TRUE(contains(moved.output, "the best model is from " + out("moved") + "/checkpoint-2")) << moved.output;
  EXPECT_EQ(checkpoints("moved"), (Names{"checkpoint-2", "checkpoint-8"}));
}

TEST_F(CheckpointCommand, WhatAKilledRunLeftOfOneGoesAndIsNotGoneOnFrom) {
  const Ended first = gpt("out", "--max_steps 2 --save_strategy steps --save_steps 2");
  ASSERT_EQ(first.status, 0) << first.output;
  for (const char* file : {"optimizer.safetensors", "trainer_state.json"}) {  // an incomplete checkpoint
    fs::create_directories(folder_ / "out" / "checkpoint-3");
    fs::copy_file(folder_ / "out" / "checkpoint-2" / file, folder_ / "out" / "checkpoint-3" / file);
  }
  fs::create_directories(folder_ / "out" / ".checkpoint-437.part");
  fs::create_directories(folder_ / "out" / ".checkpoint-1.old.part");
  std::ofstream(folder_ / "out" / ".model.safetensors.part-17-1") << "of the last save";
  const Ended resumed = gpt("out", "--max_steps 4 --save_strategy steps --save_steps 2 --resume_from_checkpoint true");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "resuming after step 2 from")) << resumed.output;
  EXPECT_EQ(checkpoints("out"), (Names{"checkpoint-2", "checkpoint-3", "checkpoint-4"}));
  EXPECT_FALSE(fs::exists(folder_ / "out" / ".model.safetensors.part-17-1"));
}

TEST_F(CheckpointCommand, StepsThatAreDoneAgainAreInTheHistoryOnce) {
  const std::string words = "--max_steps 4 --save_strategy steps --save_steps 2";
  ASSERT_EQ(gpt("out", words).status, 0);
  fs::remove_all(folder_ / "out" / "checkpoint-4");  // as if killed before it was saved
  ASSERT_EQ(gpt("out", words + " --resume_from_checkpoint true").status, 0);
  std::vector<std::string> steps;
  for (const std::string& line : split(read_file(folder_ / "out" / "metrics.csv"), '\n')) {
    if (contains(line, ",train/loss,")) steps.push_back(line.substr(0, line.find(',')));
  }
  EXPECT_EQ(steps, (std::vector<std::string>{"1", "2", "3", "4"}));
  ASSERT_EQ(gpt("out", "--max_steps 1").status, 0);  // another run: another history
  EXPECT_FALSE(contains(read_file(folder_ / "out" / "metrics.csv"), "\n2,"));
}

TEST_F(CheckpointCommand, ALossScaleGoesOnWhereItWas) {
  // It shrinks in the first steps: a run that started over would skip other steps.
  const std::string words = "--fp16 --initial_scale_power 22 --save_strategy steps --save_steps 6 ";
  const Ended whole = bloom("whole", words);
  ASSERT_EQ(whole.status, 0) << whole.output;
  const Ended rest = bloom("rest", words + "--resume_from_checkpoint " + out("whole") + "/checkpoint-6/");
  ASSERT_EQ(rest.status, 0) << rest.output;
  const std::vector<double> all = logged(whole.output, "grad_norm"), last = logged(rest.output, "grad_norm");
  ASSERT_EQ(all.size(), 12U) << whole.output;
  EXPECT_FALSE(std::isfinite(all[0])) << whole.output;
  EXPECT_TRUE(std::isfinite(all[6])) << whole.output;
  EXPECT_EQ(last, std::vector<double>(all.begin() + 6, all.end())) << rest.output;
  EXPECT_EQ(record("rest").at("summary").at("skipped_steps"), record("whole").at("summary").at("skipped_steps"));
}

TEST_F(CheckpointCommand, ARunGoesOnWithOtherRanksAndTheSameRowsAnUpdate) {
  const std::string saving = "--save_strategy steps --save_steps 6 --merge_accumulation off ";
  const Ended alone = bloom("alone", saving);  // 2 rows x 2 micro-steps
  ASSERT_EQ(alone.status, 0) << alone.output;
  const Ended two = bloom("two",
                          saving + "--gradient_accumulation_steps 1 --strategy full_shard --resume_from_checkpoint " +
                              out("alone") + "/checkpoint-6",
                          2);
  ASSERT_EQ(two.status, 0) << two.output;
  EXPECT_FALSE(contains(two.output, "the resumed run had")) << two.output;
  const std::vector<double> all = logged(alone.output, "loss"), last = logged(two.output, "loss");
  ASSERT_EQ(all.size(), 12U) << alone.output;
  ASSERT_EQ(last.size(), 6U) << two.output;
  for (std::size_t i = 0; i < last.size(); ++i) EXPECT_NEAR(last[i], all[i + 6], 1e-4) << i;
}

TEST_F(CheckpointCommand, OtherRowsAnUpdateAreToldOf) {
  ASSERT_EQ(gpt("out", "--max_steps 2 --save_strategy steps --save_steps 2").status, 0);
  const Ended resumed = gpt("out",
                            "--max_steps 4 --gradient_accumulation_steps 2 --max_train_samples 6 "
                            "--resume_from_checkpoint true");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "had 8 training rows, this one has 6")) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "had 2 rows per update, this one has 4")) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "had 2 steps, this one has 4")) << resumed.output;
}

}  // namespace
}  // namespace tessera
