// A run saved under one strategy and number of ranks goes on under another with the losses of the uninterrupted run:
// bit for bit with as many ranks, within 1e-5 with others. TESSERA_TEST_EVERYTHING=1: sixty pairs instead of a dozen.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "commands/train_command.h"
#include "support/small_decoder_config.h"

namespace tessera {
namespace {

constexpr int kRowsOfUpdate = 12, kSavedStep = 2;  // within an epoch of 3 updates
constexpr std::size_t kStepsAfter = 10;

struct Spread {
  std::string strategy;
  int num_ranks;
};

class ResumePairs : public TrainCommandTest {
 protected:
  // A run of the job into this folder, with more words.
  using Job = std::function<Ended(const std::string& folder, const Spread& spread, const std::string& more)>;

  // Dropout, and batches made ahead by workers.
  Job gpt_job() {
    return [this](const std::string& folder, const Spread& spread, const std::string& more) {
      return gpt(folder, common(spread) + "--dropout 0.1 --dataloader_num_workers 2 " + more, launched(spread));
    };
  }
  Job bloom_job() {
    return [this](const std::string& folder, const Spread& spread, const std::string& more) {
      return bloom(folder, common(spread) + "--gradient_accumulation_steps 1 --learning_rate 1e-3 " + more,
                   launched(spread));
    };
  }
  Job decoder_job() {
    std::ofstream(folder_ / "qwen3.json") << small_decoder_config("qwen3", 0, 1024).dump();
    return [this](const std::string& folder, const Spread& spread, const std::string& more) {
      return run_tessera(
          fmt::format("train qa --device cpu --output_dir {} --disable_tqdm --report_to none --config_name {} "
                      "--tokenizer_name {} --train_file {} --max_length 96 --logging_steps 1 {} {}",
                      out(folder), out("qwen3.json"), kTestTokenizer, kTestRows, common(spread), more),
          launched(spread));
    };
  }
  Job resnet_job() {
    return [this](const std::string& folder, const Spread& spread, const std::string& more) {
      return run_tessera(
          fmt::format("train resnet-tinyimagenet --device cpu --output_dir {} --data_dir {}/experiments/tiny/pictures "
                      "--image_size 32 --disable_tqdm --report_to none --logging_steps 1 --strategy {} --batch_size {} "
                      "--max_train_samples 72 --max_eval_samples 2 --epochs 1 --save_strategy steps --save_steps {} {}",
                      out(folder), TESSERA_SOURCE_FOLDER, spread.strategy, 6 / spread.num_ranks, kSavedStep, more),
          launched(spread));
    };
  }

  void expect_same_losses(const Job& job, const Spread& saved, const std::vector<Spread>& resumed) {
    const Ended whole = job("whole", saved, "");
    ASSERT_EQ(whole.status, 0) << whole.output;
    const std::vector<double> all = logged(whole.output, "loss");
    ASSERT_EQ(all.size(), kSavedStep + kStepsAfter) << whole.output;
    for (const Spread& each : resumed) {
      SCOPED_TRACE(fmt::format("{} on {} to {} on {}", saved.strategy, saved.num_ranks, each.strategy, each.num_ranks));
      const Ended rest =
          job("rest", each, fmt::format("--resume_from_checkpoint {}/checkpoint-{}", out("whole"), kSavedStep));
      ASSERT_EQ(rest.status, 0) << rest.output;
      const std::vector<double> losses = logged(rest.output, "loss");
      ASSERT_EQ(losses.size(), kStepsAfter) << rest.output;
      for (std::size_t i = 0; i < kStepsAfter; ++i) {
        const double expected = all[kSavedStep + i];
        if (each.num_ranks == saved.num_ranks) {
          EXPECT_EQ(losses[i], expected) << "step " << kSavedStep + i + 1;
        } else {
          EXPECT_LE(std::abs(losses[i] - expected), 1e-5 * std::abs(expected)) << "step " << kSavedStep + i + 1;
        }
      }
      std::filesystem::remove_all(folder_ / "rest");
    }
    std::filesystem::remove_all(folder_ / "whole");
  }

 private:
  static int launched(const Spread& spread) { return spread.strategy == "single" ? 0 : spread.num_ranks; }
  // 3 updates in each of the first 4 epochs.
  static std::string common(const Spread& spread) {
    return fmt::format(
        "--strategy {} --per_device_train_batch_size {} --max_train_samples 36 --max_steps {} "
        "--save_strategy steps --save_steps {} ",
        spread.strategy, kRowsOfUpdate / spread.num_ranks, kSavedStep + static_cast<int>(kStepsAfter), kSavedStep);
  }
};

bool wants_everything() {
  return std::getenv("TESSERA_TEST_EVERYTHING") != nullptr;
}

TEST_F(ResumePairs, OfTextWithDropout) {
  expect_same_losses(gpt_job(), {"zero3", 2}, {{"ddp", 2}, {"zero1", 2}, {"zero2", 2}, {"full_shard", 2}});
  if (!wants_everything()) return;
  const std::vector<std::string> strategies = {"ddp",        "zero0",         "zero1",    "zero2",       "zero3",
                                               "full_shard", "shard_grad_op", "no_shard", "hybrid_shard"};
  for (const Spread& saved : {Spread{"full_shard", 3}, Spread{"zero1", 4}}) {
    std::vector<Spread> others;
    for (const std::string& strategy : strategies) others.push_back({strategy, saved.num_ranks});
    expect_same_losses(gpt_job(), saved, others);
  }
}

TEST_F(ResumePairs, OfTextOnOtherRanks) {
  expect_same_losses(bloom_job(), {"full_shard", 2}, {{"single", 1}, {"zero3", 3}, {"zero2", 4}, {"ddp", 2}});
  if (!wants_everything()) return;
  expect_same_losses(bloom_job(), {"single", 1},
                     {{"ddp", 2}, {"zero1", 2}, {"zero2", 3}, {"zero3", 4}, {"full_shard", 3}, {"no_shard", 4}});
  expect_same_losses(bloom_job(), {"zero3", 4},
                     {{"single", 1},
                      {"ddp", 2},
                      {"zero1", 3},
                      {"zero2", 2},
                      {"shard_grad_op", 4},
                      {"full_shard", 2},
                      {"hybrid_shard", 4},
                      {"zero0", 3}});
  expect_same_losses(bloom_job(), {"zero2", 3},
                     {{"single", 1}, {"zero3", 2}, {"zero1", 4}, {"full_shard", 3}, {"ddp", 4}});
}

// Batch norm sees a rank's own pictures: only as many ranks compute the same.
TEST_F(ResumePairs, OfTodaysDecoders) {
  expect_same_losses(decoder_job(), {"zero2", 2}, {{"full_shard", 2}, {"ddp", 2}, {"zero1", 4}});
}

TEST_F(ResumePairs, OfPictures) {
  expect_same_losses(resnet_job(), {"full_shard", 2}, {{"ddp", 2}, {"zero3", 2}});
  if (!wants_everything()) return;
  expect_same_losses(resnet_job(), {"zero2", 3},
                     {{"ddp", 3}, {"zero0", 3}, {"zero1", 3}, {"zero3", 3}, {"full_shard", 3}, {"shard_grad_op", 3}});
  expect_same_losses(resnet_job(), {"single", 1}, {{"single", 1}, {"no_shard", 1}});
}

}  // namespace
}  // namespace tessera
