// Checkpoints of `tessera train`: which of them stay, and what a run resumes from.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>

#include "commands/train_command.h"
#include "core/file.h"
#include "core/text.h"
#include "state/checkpoint_folder.h"
#include "state/output_lock.h"
#include "support/weight_bytes.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

int number_from_environment(const char* name, int preset) {
  const char* text = std::getenv(name);
  return text == nullptr ? preset : std::atoi(text);
}

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
  const Ended newer =
      gpt("out", "--max_steps 2 --save_strategy steps --save_steps 1 --save_total_limit 1 --overwrite_output_dir");
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
      "true --learning_rate 1e-2 --save_hf_weights",
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
  for (const char* file : {"config.json", "trainer_state.json"}) {  // an incomplete checkpoint
    fs::create_directories(folder_ / "out" / "checkpoint-3");
    fs::copy_file(folder_ / "out" / "checkpoint-2" / file, folder_ / "out" / "checkpoint-3" / file);
  }
  fs::create_directories(folder_ / "out" / ".checkpoint-437.part");
  fs::create_directories(folder_ / "out" / ".checkpoint-1.old.part");
  std::ofstream(folder_ / "out" / ".model.safetensors.part-17-1") << "of the last save";
  std::ofstream(folder_ / "out" / ".run.json.part-99999999-2") << "of a process that is gone";
  const Ended resumed = gpt("out", "--max_steps 4 --save_strategy steps --save_steps 2 --resume_from_checkpoint true");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_TRUE(contains(resumed.output, "resuming after step 2 from")) << resumed.output;
  EXPECT_EQ(checkpoints("out"), (Names{"checkpoint-2", "checkpoint-3", "checkpoint-4"}));
  EXPECT_FALSE(fs::exists(folder_ / "out" / ".model.safetensors.part-17-1"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / ".run.json.part-99999999-2"));
}

TEST_F(CheckpointCommand, ADamagedOneIsNamedAndPassedOverOrRefused) {
  const std::string words = "--max_steps 6 --save_strategy steps --save_steps 2 --strategy zero3 ";
  ASSERT_EQ(gpt("out", words, 2).status, 0);
  const fs::path file = folder_ / "out" / "checkpoint-6" / "state-00001-of-00002.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(file, std::ios::binary) << bytes;
  const Ended named = gpt("out", words + "--resume_from_checkpoint " + out("out") + "/checkpoint-6");
  EXPECT_EQ(named.status, 2) << named.output;
  EXPECT_TRUE(contains(named.output, "state-00001-of-00002.safetensors: damaged: bytes 0 to")) << named.output;
  EXPECT_TRUE(contains(named.output, out("out") + "/checkpoint-4 is complete")) << named.output;
  const Ended latest = gpt("out", words + "--resume_from_checkpoint latest");
  ASSERT_EQ(latest.status, 0) << latest.output;
  EXPECT_TRUE(contains(latest.output, "skipped: ")) << latest.output;
  EXPECT_TRUE(contains(latest.output, "resuming after step 4 from")) << latest.output;
}

// Whatever is done to whichever file: the resume is refused and names it. More flips: TESSERA_FLIPS and TESSERA_SEED.
TEST_F(CheckpointCommand, NoFileOfADamagedOneIsUsed) {
  const std::string words =
      "--max_steps 2 --save_strategy steps --save_steps 2 --strategy full_shard --save_hf_weights ";
  ASSERT_EQ(gpt("good", words, 2).status, 0);
  ASSERT_EQ(gpt("other", words + "--seed 5", 2).status, 0);
  const fs::path good = folder_ / "good/checkpoint-2", other = folder_ / "other/checkpoint-2";
  const fs::path bad = folder_ / "bad/checkpoint-2";
  std::mt19937 random(static_cast<unsigned>(number_from_environment("TESSERA_SEED", 1)));
  const auto expect_named = [&](const std::string& file, const std::string& how) {
    const Ended verified = run_tessera("checkpoint verify " + bad.string());
    EXPECT_NE(verified.status, 0) << file << " " << how;
    EXPECT_TRUE(contains(verified.output, file)) << how << ": " << verified.output;
    const Ended ended = gpt("bad", words + "--max_steps 3 --resume_from_checkpoint " + bad.string());
    EXPECT_EQ(ended.status, 2) << file << " " << how << ": " << ended.output;
    EXPECT_TRUE(contains(ended.output, file)) << how << ": " << ended.output;
  };
  for (const auto& entry : fs::directory_iterator(good)) {
    const std::string file = entry.path().filename().string();
    const auto damage = [&](const std::string& how, const std::function<void(std::string&)>& change) {
      fs::remove_all(bad.parent_path());
      fs::create_directories(bad.parent_path());
      fs::copy(good, bad, fs::copy_options::recursive);
      std::string bytes = read_file(bad / file);
      change(bytes);
      std::ofstream(bad / file, std::ios::binary) << bytes;
      expect_named(file, how);
    };
    for (int i = 0; i < number_from_environment("TESSERA_FLIPS", 1); ++i) {
      damage("with a flipped bit", [&](std::string& bytes) {
        // A digit or letter of text: a changed blank of the index says the same.
        std::size_t at = random() % bytes.size();
        while (file == "state.index.json" && std::isalnum(static_cast<unsigned char>(bytes[at])) == 0) {
          at = (at + 1) % bytes.size();
        }
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
      });
    }
    damage("cut", [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
    const std::string of_other = fs::exists(other / file) ? read_file(other / file) : "";
    if (!of_other.empty() && of_other != read_file(good / file) && file != "state.index.json") {
      damage("of another run", [&](std::string& bytes) { bytes = of_other; });
    }
    fs::remove(bad / file);
    expect_named(file, "removed");
  }
}

// Whoever is killed, and whenever: a rank, or the launcher and with it all. More kills: TESSERA_KILLS and TESSERA_SEED.
TEST_F(CheckpointCommand, KilledAtRandomMomentsARunEndsWithTheSameModel) {
  const int num_kills = number_from_environment("TESSERA_KILLS", 6);
  std::mt19937 random(static_cast<unsigned>(number_from_environment("TESSERA_SEED", 7)));
  const auto launched = [&](const std::string& name, const std::string& more) {
    return fmt::format("{} launch --nproc_per_node 2 {}", binary(),
                       gpt_words(name, fmt::format("--strategy zero2 --num_train_epochs {} --save_strategy steps "
                                                   "--save_steps 1 --save_total_limit 2 {}",
                                                   40 + 10 * num_kills, more)));
  };
  const Ended whole = run_shell(launched("whole", ""));
  ASSERT_EQ(whole.status, 0) << whole.output;
  int num_killed = 0;
  Ended ended;
  for (int i = 0; i <= num_kills; ++i) {
    const bool has_one = !find_checkpoints(folder_ / "out").empty();
    const std::string command = launched("out", has_one ? "--resume_from_checkpoint latest" : "");
    const double seconds = 0.7 + static_cast<double>(random() % 1200) / 1000;
    const bool kills_a_rank = random() % 2 == 0;
    ended = run_shell(i == num_kills ? command
                      : kills_a_rank ? fmt::format("{} & sleep {}; until pkill -KILL -n -f -- '{} train.*{}'; do kill "
                                                   "-0 $! || break; sleep 0.1; done; wait $!",
                                                   command, seconds, binary(), out("out"))
                                     : fmt::format("timeout -s KILL {} {}", seconds, command));
    if (ended.status != 0) ++num_killed;
    EXPECT_FALSE(contains(ended.output, "skipped: ")) << "a broken checkpoint:\n" << ended.output;
    EXPECT_FALSE(contains(ended.output, "in use by another run")) << ended.output;
  }
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_GE(num_killed, num_kills / 2) << "too few were hit";
  EXPECT_TRUE(read_file(folder_ / "out/model.safetensors") == read_file(folder_ / "whole/model.safetensors"));
  EXPECT_EQ(checkpoints("out"), checkpoints("whole")) << "nothing half written stays";
}

TEST_F(CheckpointCommand, TwoRunsDoNotShareAFolder) {
  fs::create_directories(folder_ / "out");
  {
    const OutputLock other(folder_ / "out", Environment());
    const Ended refused = gpt("out", "--max_steps 2");
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_TRUE(contains(refused.output, "is in use by another run, process")) << refused.output;
  }
  EXPECT_EQ(gpt("out", "--max_steps 2").status, 0);
}

TEST_F(CheckpointCommand, AreListedCheckedShownAndPruned) {
  ASSERT_EQ(gpt("out", "--max_steps 6 --save_strategy steps --save_steps 2").status, 0);
  const Ended listed = run_tessera("checkpoint ls " + out("out"));
  EXPECT_EQ(listed.status, 0) << listed.output;
  for (const char* step : {"2", "4", "6"}) {
    EXPECT_TRUE(contains(listed.output, std::string("checkpoint-") + step)) << listed.output;
  }
  EXPECT_EQ(run_tessera("checkpoint verify " + out("out")).status, 0);
  fs::resize_file(folder_ / "out/checkpoint-4/config.json", 10);
  const Ended damaged = run_tessera("checkpoint verify " + out("out"));
  EXPECT_EQ(damaged.status, 1) << damaged.output;
  EXPECT_TRUE(contains(damaged.output, "checkpoint-4: DAMAGED: ")) << damaged.output;
  EXPECT_TRUE(contains(damaged.output, "checkpoint-6: complete")) << damaged.output;
  const Ended shown = run_tessera("checkpoint show " + out("out") + "/checkpoint-6");
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_TRUE(contains(shown.output, "step        6 of 6")) << shown.output;
  EXPECT_TRUE(contains(shown.output, "optimizer.exp_avg_sq")) << shown.output;
  EXPECT_EQ(run_tessera("checkpoint prune " + out("out")).status, 2) << "it must say how many";
  const Ended pruned = run_tessera("checkpoint prune --keep 1 " + out("out"));
  EXPECT_EQ(pruned.status, 0) << pruned.output;
  EXPECT_TRUE(contains(pruned.output, "not touched: ")) << pruned.output;
  EXPECT_EQ(checkpoints("out"), (Names{"checkpoint-4", "checkpoint-6"})) << "the damaged one may be worth mending";
  EXPECT_EQ(run_tessera("checkpoint show " + out("none")).status, 2);
}

// A checkpoint of three ranks, in the places that take a model folder.
TEST_F(CheckpointCommand, OneIsEvaluatedAskedShownAndConverted) {
  const Ended trained = gpt("out", "--max_steps 2 --save_strategy steps --save_steps 2 --strategy full_shard", 3);
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::string checkpoint = out("out") + "/checkpoint-2";
  const Ended converted = run_tessera("convert " + checkpoint + " " + out("converted"));
  ASSERT_EQ(converted.status, 0) << converted.output;
  const Weights from_checkpoint = Weights::open(folder_ / "converted"), from_run = Weights::open(folder_ / "out");
  ASSERT_EQ(from_checkpoint.entries().size(), from_run.entries().size());
  for (const WeightEntry& entry : from_run.entries()) {
    const WeightEntry* same = from_checkpoint.find(entry.name);
    ASSERT_NE(same, nullptr) << entry.name;
    EXPECT_TRUE(bytes_of(from_checkpoint, *same) == bytes_of(from_run, entry)) << entry.name;
  }
  const Ended shown = run_tessera("inspect " + checkpoint);
  EXPECT_EQ(shown.status, 0) << shown.output;
  EXPECT_TRUE(contains(shown.output, "for transformers: tessera convert " + checkpoint + " FOLDER")) << shown.output;
  EXPECT_FALSE(contains(run_tessera("inspect " + out("converted")).output, "for transformers"));
  std::vector<std::string> answers;
  for (const std::string& model : {checkpoint, out("out")}) {
    const Ended asked =
        run_tessera("generate --device cpu --max_new_tokens 3 --prompt 'Question: What' --model " + model);
    EXPECT_EQ(asked.status, 0) << asked.output;
    answers.push_back(asked.output);
  }
  EXPECT_EQ(answers[0], answers[1]);
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
  ASSERT_EQ(gpt("out", "--max_steps 1 --overwrite_output_dir").status, 0);  // another run: another history
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

// With weights that stay as they are, an update's loss tells its row.
TEST_F(CheckpointCommand, OtherBatchesGoOnAtTheSameRow) {
  const std::string still =
      "--learning_rate 1e-30 --weight_decay 0 --dropout 0 --num_train_epochs 1 --save_strategy steps --save_steps 1 ";
  const Ended rows = gpt("rows", still + "--per_device_train_batch_size 1");
  ASSERT_EQ(rows.status, 0) << rows.output;
  const std::vector<double> losses = logged(rows.output, "loss");
  ASSERT_EQ(losses.size(), 8U);
  ASSERT_EQ(gpt("threes", still + "--per_device_train_batch_size 3").status, 0);
  const Ended rest = gpt(
      "rest", still + "--per_device_train_batch_size 1 --resume_from_checkpoint " + out("threes") + "/checkpoint-1");
  ASSERT_EQ(rest.status, 0) << rest.output;
  EXPECT_EQ(logged(rest.output, "loss"), std::vector<double>(losses.begin() + 3, losses.end())) << rest.output;
  EXPECT_FALSE(contains(rest.output, "used twice")) << rest.output;
  // And once more, in the middle of what was left: step 3 of that run is row 5.
  const Ended last = gpt("last", still +
                                     "--per_device_train_batch_size 1 --gradient_accumulation_steps 3 "
                                     "--resume_from_checkpoint " +
                                     out("rest") + "/checkpoint-3");
  ASSERT_EQ(last.status, 0) << last.output;
  EXPECT_EQ(logged(last.output, "loss").size(), 1U) << last.output;
  EXPECT_TRUE(contains(last.output, "'epoch': 1.0}")) << last.output;
  const Ended past =
      gpt("past", still + "--per_device_train_batch_size 1 --num_train_epochs 0.5 --resume_from_checkpoint " +
                      out("rows") + "/checkpoint-6");
  EXPECT_EQ(past.status, 2) << past.output;
  EXPECT_TRUE(contains(past.output, "the checkpoint is at step 6, but this run has only 4 steps: give more by"))
      << past.output;
  const Ended shuffled =
      gpt("shuffled", still + "--per_device_train_batch_size 1 --data_seed 7 --resume_from_checkpoint " + out("rows") +
                          "/checkpoint-6");
  ASSERT_EQ(shuffled.status, 0) << shuffled.output;
  EXPECT_TRUE(contains(shuffled.output, "this one shuffled by --data_seed 7: in this epoch some may be used twice"))
      << shuffled.output;
}

TEST_F(CheckpointCommand, AFolderThatIsNoneIsRefusedWithTheReason) {
  const std::string model_alone = "--max_steps 2 --save_strategy steps --save_steps 2 --save_only_model";
  ASSERT_EQ(gpt("out", model_alone).status, 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nothing", "nothing: there is no such folder; expected a checkpoint"},
      {"out", "is no checkpoint, but has some: name one of them, like " + out("out") + "/checkpoint-2"},
      {"out/checkpoint-2", "holds the model alone, without the state that a run resumes from"}};
  for (const auto& [place, reason] : cases) {
    const Ended refused = gpt("again", "--max_steps 4 --resume_from_checkpoint " + out(place));
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_TRUE(contains(refused.output, reason)) << refused.output;
  }
  // A checkpoint that has lost its index is not taken for one.
  ASSERT_EQ(gpt("whole", "--max_steps 2 --save_strategy steps --save_steps 2 --save_hf_weights").status, 0);
  fs::remove(folder_ / "whole/checkpoint-2/state.index.json");
  const Ended damaged = run_tessera("checkpoint verify " + out("whole/checkpoint-2"));
  EXPECT_EQ(damaged.status, 1) << damaged.output;
  EXPECT_TRUE(contains(damaged.output, "DAMAGED: ")) << damaged.output;
  for (const char* verb : {"ls", "verify", "show"}) {
    const Ended seen = run_tessera(std::string("checkpoint ") + verb + " " + out("out/checkpoint-2"));
    EXPECT_EQ(seen.status, 0) << seen.output;
    EXPECT_TRUE(contains(seen.output, "the model alone, without checksums")) << seen.output;
  }
}

}  // namespace
}  // namespace tessera
