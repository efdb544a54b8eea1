// `tessera train resnet-tinyimagenet` as users start it, on experiments/tiny/pictures: 96 training pictures of 32 x 32
// in 4 classes, 40 for validation.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>

#include "core/file.h"
#include "jobs/image_task.h"
#include "train_command.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kPictures = std::string(TESSERA_SOURCE_FOLDER) + "/experiments/tiny/pictures";

// None if the line is no epoch's.
std::optional<EpochResult> parse_epoch_line(const std::string& line) {
  const std::size_t begin = line.find("Epoch [");
  if (begin == std::string::npos) return std::nullopt;
  EpochResult read;
  const int num_read = std::sscanf(
      line.c_str() + begin,
      "Epoch [%ld/%ld] LR: %lf | Loss (train, val): %lf, %lf | Accuracy (train, val): %lf%%, %lf%% | Throughput: %lf",
      &read.epoch, &read.num_epochs, &read.learning_rate, &read.train_loss, &read.val_loss, &read.train_accuracy,
      &read.val_accuracy, &read.images_per_second);
  return num_read == 8 ? std::optional(read) : std::nullopt;
}

std::vector<EpochResult> epochs_of(const std::string& output) {
  std::vector<EpochResult> epochs;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const std::string line = output.substr(begin, end - begin);
    if (const auto epoch = parse_epoch_line(line)) {
      EXPECT_EQ(format_epoch_line(*epoch), line);  // printed exactly in the format
      epochs.push_back(*epoch);
    }
    begin = end + 1;
  }
  return epochs;
}

// What the run computed, except what depends on the clock.
std::string epoch_numbers_of(const std::string& output) {
  std::string numbers;
  for (const EpochResult& epoch : epochs_of(output)) {
    EpochResult timeless = epoch;
    timeless.images_per_second = 0;
    numbers += format_epoch_line(timeless) + "\n";
  }
  for (const LogLine& line : parse_log(output)) {
    for (const char* key : {"loss", "grad_norm", "eval_loss", "eval_accuracy", "train_loss"}) {
      if (const auto value = line.record.number(key)) numbers += fmt::format("{} {}\n", key, *value);
    }
  }
  return numbers;
}

class ResNetCommand : public TrainCommandTest {
 protected:
  Ended train(const std::string& name, const std::string& more, int num_ranks = 0,
              const std::string& data = kPictures) const {
    return run_tessera(
        fmt::format("train resnet-tinyimagenet --device cpu --output_dir {} --data_dir {} --image_size 32 "
                    "--disable_tqdm --report_to none --logging_steps 1 {}",
                    out(name), data, more),
        num_ranks);
  }
  // 2 steps per epoch with 4 pictures per rank, and 5 pictures to evaluate on.
  Ended brief(const std::string& name, const std::string& more, int num_ranks = 0) const {
    return train(name,
                 fmt::format("--batch-size 4 --max_train_samples {} --max_eval_samples 5 --epochs 1 {}",
                             8 * std::max(1, num_ranks), more),
                 num_ranks);
  }
  std::string weights(const std::string& name) const { return read_file(folder_ / name / "model.safetensors"); }
  // A copy of the pictures that a test may damage.
  fs::path copy(const std::string& name) const {
    fs::copy(kPictures, folder_ / name, fs::copy_options::recursive);
    return folder_ / name;
  }
};

TEST_F(ResNetCommand, PrintsEpochsAndLeavesAModelFolderThatTrainsOn) {
  const Ended ended = brief("run",
                            "--epochs 2 --step-size 1 --gamma 0.1 --lr 1e-4 --report_to tensorboard "
                            "--num-workers 2");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<EpochResult> epochs = epochs_of(ended.output);
  ASSERT_EQ(epochs.size(), 2U) << ended.output;
  EXPECT_EQ(epochs[1].epoch, 2);
  EXPECT_EQ(epochs[1].num_epochs, 2);
  EXPECT_DOUBLE_EQ(epochs[0].learning_rate, 1e-4);
  EXPECT_DOUBLE_EQ(epochs[1].learning_rate, 1e-5);
  const std::vector<double> losses = logged(ended.output, "loss"), eval = logged(ended.output, "eval_loss"),
                            accuracy = logged(ended.output, "eval_accuracy");
  ASSERT_EQ(losses.size(), 4U);
  ASSERT_EQ(eval.size(), 2U);
  // The epoch's loss is the mean over its pictures; both batches have the same size.
  EXPECT_NEAR(epochs[0].train_loss, (losses[0] + losses[1]) / 2, 1e-3);
  EXPECT_NEAR(epochs[1].val_loss, eval[1], 5e-4);
  EXPECT_NEAR(epochs[1].val_accuracy, 100 * accuracy[1], 5e-3);
  const double eighths = epochs[0].train_accuracy / 12.5;
  EXPECT_EQ(eighths, std::round(eighths));
  EXPECT_GT(epochs[0].images_per_second, 0);
  EXPECT_TRUE(std::regex_search(ended.output, std::regex("\nTotal execution time = \\d+\\.\\d{3} sec\n")));
  EXPECT_TRUE(std::regex_search(ended.output, std::regex("\nMax memory used by tensors = \\d+ bytes\n")));
  EXPECT_TRUE(contains(ended.output, "Model saved to " + out("run"))) << ended.output;

  const Json history = record("run");
  const std::string text = history.dump();
  for (const char* name :
       {"Loss/train", "Loss/val", "Accuracy/train", "Accuracy/val", "Throughput/images_per_sec", "LR"}) {
    EXPECT_TRUE(contains(text, name)) << name << text;
    EXPECT_TRUE(contains(read_file(folder_ / "run" / "metrics.csv"), name)) << name;
  }
  const Json config = read_json_file(folder_ / "run" / "config.json");
  EXPECT_EQ(config.at("num_labels"), 4);
  EXPECT_EQ(config.at("id2label").at("2"), "n00000030");
  EXPECT_TRUE(contains(weights("run"), "layer4.2.bn3.running_var"));
  EXPECT_TRUE(contains(weights("run"), "layer4.2.bn3.num_batches_tracked"));

  // The folder has the run's weights and statistics: the first evaluation from it equals the run's last.
  const Ended again = brief("again", fmt::format("--model_name_or_path {} --eval_on_start --max_steps 1", out("run")));
  ASSERT_EQ(again.status, 0) << again.output;
  EXPECT_EQ(logged(again.output, "eval_loss").front(), eval[1]) << again.output;
}

TEST_F(ResNetCommand, KeepsTheShortLastBatchAndDropsTheTailBetweenRanks) {
  struct Case {
    const char* arguments;
    int num_ranks, num_steps;
  };
  int num_runs = 0;
  for (const Case& each : {Case{"--batch-size 4 --max_train_samples 10", 0, 3},    // 4 + 4 + 2
                           Case{"--batch-size 512 --max_train_samples 10", 0, 1},  // more than there are
                           Case{"--batch-size 4 --max_train_samples 17", 2, 2},    // 8 per rank
                           Case{"--batch-size 4 --max_train_samples 15 --sampler_drop_last false "
                                "--dataloader_drop_last",
                                2, 2}}) {  // one repeats: 8 per rank
    const Ended ended = train(fmt::format("steps{}", num_runs++),
                              std::string(each.arguments) + " --epochs 1 --eval_strategy no", each.num_ranks);
    ASSERT_EQ(ended.status, 0) << ended.output;
    EXPECT_EQ(std::ssize(logged(ended.output, "loss")), each.num_steps) << each.arguments << "\n" << ended.output;
  }
}

// One update per reduction: all rows have the same bits.
TEST_F(ResNetCommand, ComputesTheSameUnderEveryStrategy) {
  std::string numbers, first_weights;
  int num_runs = 0;
  for (const char* strategy : {"ddp", "zero0", "no_shard", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op",
                               "hybrid_shard", "zero3 --offload_optimizer --offload_param"}) {
    const std::string name = fmt::format("out{}", num_runs++);
    const Ended ended = brief(name, fmt::format("--strategy {}", strategy), 2);
    ASSERT_EQ(ended.status, 0) << strategy << ended.output;
    const std::string found = epoch_numbers_of(ended.output), found_weights = weights(name);
    ASSERT_EQ(logged(ended.output, "loss").size(), 2U) << ended.output;
    ASSERT_EQ(epochs_of(ended.output).size(), 1U) << ended.output;
    if (numbers.empty()) {
      numbers = found;
      first_weights = found_weights;
    }
    EXPECT_EQ(found, numbers) << strategy;
    EXPECT_TRUE(found_weights == first_weights) << strategy;
  }
}

// 5 pictures on 2 ranks: 3 and 2, in batches of 2, so that one rank has no second batch.
TEST_F(ResNetCommand, CountsEachValidationPictureOnce) {
  const std::string before = "--eval_on_start --eval_strategy no --max_steps 1 --per_device_eval_batch_size 2";
  const Ended one = brief("one", before), two = brief("two", before + " --strategy full_shard", 2),
              local = brief("local", before + " --local_metrics", 2);
  ASSERT_EQ(one.status + two.status + local.status, 0) << one.output << two.output << local.output;
  const double wanted = logged(one.output, "eval_loss").front();
  EXPECT_NEAR(logged(two.output, "eval_loss").front(), wanted, 1e-6 * wanted);
  EXPECT_EQ(logged(two.output, "eval_accuracy"), logged(one.output, "eval_accuracy"));
  // Only rank 0's three pictures.
  EXPECT_GT(std::abs(logged(local.output, "eval_loss").front() - wanted), 1e-6 * wanted) << local.output;
  const double thirds = 3 * logged(local.output, "eval_accuracy").front();
  EXPECT_NEAR(thirds, std::round(thirds), 1e-9);
  // The training numbers: 4 pictures of rank 0, 8 of both.
  const double quarters = epochs_of(local.output).front().train_accuracy / 25;
  EXPECT_EQ(quarters, std::round(quarters)) << local.output;
  EXPECT_TRUE(std::isnan(epochs_of(local.output).front().val_loss)) << local.output;
}

// With a learning rate of 0 the micro-steps of an update see what two updates would see.
TEST_F(ResNetCommand, AnUpdateOfTwoMicroStepsHasTheMeanOfTheirLosses) {
  const Ended apart = brief("apart", "--lr 0 --eval_strategy no");
  const Ended together = brief("together", "--lr 0 --eval_strategy no --gradient_accumulation_steps 2");
  ASSERT_EQ(apart.status + together.status, 0) << apart.output << together.output;
  const std::vector<double> losses = logged(apart.output, "loss");
  ASSERT_EQ(losses.size(), 2U) << apart.output;
  ASSERT_EQ(logged(together.output, "loss").size(), 1U) << together.output;
  EXPECT_NEAR(logged(together.output, "loss").front(), (losses[0] + losses[1]) / 2, 1e-4);
  EXPECT_EQ(epochs_of(apart.output).front().train_loss, epochs_of(together.output).front().train_loss);
}

// Moments, statistics, order of the pictures, their crops, schedule: the run is cut in the middle of an epoch.
TEST_F(ResNetCommand, GoesOnFromACheckpointAsIfItHadNotStopped) {
  const std::string saving = "--epochs 2 --step-size 1 --save_strategy steps --save_steps 3 --eval_strategy epoch ";
  const Ended whole = brief("whole", saving + "--strategy zero3", 2);
  ASSERT_EQ(whole.status, 0) << whole.output;
  fs::rename(folder_ / "whole" / "checkpoint-3", out("kept"));
  const Ended rest = brief("rest", saving + "--strategy ddp --resume_from_checkpoint " + out("kept"), 2);
  ASSERT_EQ(rest.status, 0) << rest.output;
  ASSERT_EQ(logged(whole.output, "loss").size(), 4U) << whole.output;
  ASSERT_EQ(logged(rest.output, "loss").size(), 1U) << rest.output;
  EXPECT_EQ(logged(rest.output, "loss").back(), logged(whole.output, "loss").back());
  EXPECT_EQ(logged(rest.output, "eval_loss").back(), logged(whole.output, "eval_loss").back());
  EXPECT_EQ(logged(rest.output, "train_loss"), logged(whole.output, "train_loss"));
  EXPECT_TRUE(weights("rest") == weights("whole"));
}

TEST_F(ResNetCommand, KeepsTheModelOfTheBestAccuracy) {
  const Ended ended =
      brief("best",
            "--epochs 3 --save_strategy epoch --save_total_limit 1 --load_best_model_at_end --save_hf_weights "
            "--metric_for_best_model accuracy --greater_is_better false "
            "--early_stopping_patience 2");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<double> accuracies = logged(ended.output, "eval_accuracy");
  ASSERT_GE(accuracies.size(), 2U) << ended.output;
  std::size_t best = 0;  // the lowest, as requested
  for (std::size_t i = 1; i < accuracies.size(); ++i) best = accuracies[i] < accuracies[best] ? i : best;
  const std::string name = fmt::format("checkpoint-{}", 2 * (best + 1));
  ASSERT_TRUE(fs::exists(folder_ / "best" / name)) << ended.output;
  EXPECT_TRUE(weights("best") == weights("best/" + name));
}

TEST_F(ResNetCommand, DryRunPrintsThePlanAndTrainsNothing) {
  const Ended ended = brief("dry", "--dry_run --predict_speed --strategy zero3", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "expected: ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "2 steps of 4 x 1 images on 2 ranks")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "activations")) << ended.output;
  EXPECT_TRUE(epochs_of(ended.output).empty()) << ended.output;
  EXPECT_FALSE(fs::exists(folder_ / "dry" / "model.safetensors"));
}

// AMP on a CPU, where libtorch's half types are slow: one step each. The scale of 65536 is too large for the gradients
// of fresh weights and so few pictures.
TEST_F(ResNetCommand, ComputesInHalfTypesWhereAsked) {
  const std::string one = "--max_steps 1 --eval_strategy no";
  const Ended bf16 = brief("bf16", one + " --bf16"), fp16 = brief("fp16", one + " --fp16");
  ASSERT_EQ(bf16.status + fp16.status, 0) << bf16.output << fp16.output;
  EXPECT_TRUE(contains(bf16.output, "convolutions in bfloat16")) << bf16.output;
  EXPECT_TRUE(contains(fp16.output, "convolutions in float16")) << fp16.output;
  EXPECT_TRUE(std::isfinite(logged(bf16.output, "grad_norm").front())) << bf16.output;
  EXPECT_FALSE(std::isfinite(logged(fp16.output, "grad_norm").front())) << fp16.output;
  EXPECT_TRUE(std::isfinite(logged(fp16.output, "loss").front())) << fp16.output;
}

TEST_F(ResNetCommand, LearnsToTellTheClassesApart) {
  const Ended ended = train("learned",
                            "--batch-size 16 --per_device_eval_batch_size 40 --epochs 6 --lr 0.01 "
                            "--step-size 4 --eval_delay 6");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::vector<EpochResult> epochs = epochs_of(ended.output);
  ASSERT_EQ(epochs.size(), 6U) << ended.output;
  EXPECT_LT(epochs.back().train_loss, epochs.front().train_loss / 2) << ended.output;
  EXPECT_GT(epochs.back().train_accuracy, 60) << ended.output;
  EXPECT_GT(epochs.back().val_accuracy, 60) << ended.output;  // chance is 25, the largest class 30
}

TEST_F(ResNetCommand, EndsWithOneMessageAtBadInput) {
  const fs::path train_folder = "train", first = train_folder / "n00000010" / "images";
  const std::map<std::string, std::function<void(const fs::path&)>> spoilt = {
      {"empty_class", [](const fs::path& data) { fs::create_directories(data / "train" / "n00000099" / "images"); }},
      {"broken",
       [&](const fs::path& data) {
         for (const auto& entry : fs::directory_iterator(data / first))
           std::ofstream(entry.path()) << "\xFF\xD8\xFF no";
       }},
      {"no_annotations", [](const fs::path& data) { fs::remove(data / "val" / "val_annotations.txt"); }},
      {"no_val", [](const fs::path& data) { fs::remove_all(data / "val"); }},
      {"foreign_class",
       [](const fs::path& data) {
         std::ofstream(data / "val" / "val_annotations.txt") << "val_0.JPEG\tn12345678\t0\t0\t1\t1\n";
       }},
      {"more_classes",
       [&](const fs::path& data) {
         fs::copy(data / "train" / "n00000010", data / "train" / "n00000099", fs::copy_options::recursive);
       }},
      {"empty",
       [](const fs::path& data) {
         fs::remove_all(data / "train");
         fs::create_directories(data / "train");
       }},
  };
  for (const auto& [name, spoil] : spoilt) spoil(copy(name));
  const Ended four = brief("four", "--max_steps 1 --eval_strategy no");
  ASSERT_EQ(four.status, 0) << four.output;
  struct Case {
    std::string data, arguments, message;
    int num_ranks = 0;
  };
  const std::vector<Case> cases = {
      {"empty_class", "", "no JPEG for class n00000099"},
      {"broken", "--batch-size 16", ".JPEG: ", 2},
      {"no_annotations", "", "val_annotations.txt is missing"},
      {"no_val", "", "has no folder val"},
      {"foreign_class", "", "n12345678"},
      {"more_classes", "--model_name_or_path " + out("four"), "label 4 (n00000099) is outside them"},
      {"empty", "", "holds no class folders"},
      {"nowhere", "", "there is no folder"},
      {"", "--max_train_samples 1", "1 training images for 2 ranks", 2},
      {"", "--dataloader_drop_last", "do not fill a batch of 512"},
      {"", "--batch-size 4 --max_train_samples 9", "too few for batch norm at --image_size 32"},
      {"", "--batch-size 4 --gradient_accumulation_steps 2 --merge_accumulation on", "merge_accumulation"},
      {"", "--model_name_or_path " + kTestData + "/train_command/model", "no two-dimensional fc.weight"},
      {"", "--batch-size 4 --resume_from_checkpoint true", "has no checkpoint to resume from"},
  };
  for (const Case& each : cases) {
    const std::string data = each.data.empty() ? kPictures : out(each.data);
    const Ended ended = train("bad", each.arguments, each.num_ranks, data);
    EXPECT_NE(ended.status, 0) << each.message << ended.output;
    EXPECT_TRUE(contains(ended.output, each.message)) << each.arguments << "\n" << ended.output;
    EXPECT_FALSE(contains(ended.output, "Model saved")) << each.message;
  }
}

TEST_F(ResNetCommand, TakesAPlainTreeOfClassesWithoutEvaluation) {
  const std::string tree = kPictures + "/train";
  const Ended ended = train("tree", "--batch-size 4 --max_steps 1", 0, tree);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "there will be no evaluation")) << ended.output;
  const Ended asked = train("asked", "--batch-size 4 --max_steps 1 --eval_strategy epoch", 0, tree);
  EXPECT_EQ(asked.status, 2) << asked.output;
  EXPECT_TRUE(contains(asked.output, "nothing to evaluate on")) << asked.output;
}

}  // namespace
}  // namespace tessera
