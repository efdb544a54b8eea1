// The commands on a GPU, as users start them. Run where there is one: `./x gpu-test`.
#include <algorithm>
#include <cmath>

#include "commands/train_command.h"
#include "core/file.h"
#include "support/small_decoder_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class GpuCommand : public TrainCommandTest {
 protected:
  // Later options win.
  Ended bloom_on_gpu(const std::string& name, const std::string& more) const {
    return bloom(name, "--device cuda --num_train_epochs 2 " + more);
  }
  std::vector<double> losses_of(const std::string& name, const std::string& more) const {
    const Ended ended = bloom_on_gpu(name, more);
    EXPECT_EQ(ended.status, 0) << more << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, "NVIDIA")) << ended.output;
    std::vector<double> losses = logged(ended.output, "loss");
    EXPECT_EQ(losses.size(), 8U) << more << "\n" << ended.output;
    return losses;
  }
};

void expect_close(const std::vector<double>& ours, const std::vector<double>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(ours.size(), expected.size()) << what;
  for (std::size_t i = 0; i < ours.size(); ++i)
    EXPECT_NEAR(ours[i], expected[i], tolerance) << what << ", step " << i + 1;
}

TEST_F(GpuCommand, TrainsBloomAsACpuDoesInEveryTypeAndStrategy) {
  const Ended on_cpu = bloom("cpu", "--num_train_epochs 2");
  ASSERT_EQ(on_cpu.status, 0) << on_cpu.output;
  const std::vector<double> expected = logged(on_cpu.output, "loss");
  ASSERT_LT(expected.back(), 0.95 * expected.front());
  // The loss is printed with 4 places.
  expect_close(losses_of("fp32", ""), expected, 5e-3, "float32");
  expect_close(losses_of("off", "--strategy zero3 --offload_optimizer --offload_param"), expected, 5e-3, "offloaded");
  expect_close(losses_of("bf16", "--bf16"), expected, 0.1, "bf16");
  expect_close(losses_of("shards", "--bf16 --strategy full_shard --merge_accumulation off"), expected, 0.1,
               "bf16 shards");
  expect_close(losses_of("fp16", "--fp16 --initial_scale_power 8"), expected, 0.1, "fp16");
  EXPECT_EQ(record("fp16").at("summary").at("skipped_steps"), 0);
  // Updates wait for the norm, or run during backward.
  const std::vector<double> waiting = losses_of("waiting", "--strategy zero2 --max_grad_norm 0");
  expect_close(losses_of("backward", "--strategy zero2 --offload_optimizer --max_grad_norm 0"), waiting, 5e-3,
               "updates during backward");
  // One step behind: other losses, but similar ones.
  const std::vector<double> delayed = losses_of("delayed", "--strategy zero2 --offload_optimizer --delayed_update");
  EXPECT_NEAR(delayed[0], expected[0], 5e-3);
  double largest_difference = 0;
  for (std::size_t i = 0; i < delayed.size(); ++i)
    largest_difference = std::max(largest_difference, std::abs(delayed[i] - expected[i]));
  EXPECT_GT(largest_difference, 1e-2);
  EXPECT_LT(delayed.back(), 0.97 * delayed.front());
}

TEST_F(GpuCommand, TrainsTodaysDecodersAsACpuDoesAndRepeatsItselfWhereAsked) {
  for (const std::string family : {"qwen3", "gemma3_text"}) {
    SCOPED_TRACE(family);
    const std::string config = out(family + ".json");
    write_file_atomically(config, small_decoder_config(family, 0, 1024).dump());
    const auto losses = [&](const std::string& name, const std::string& more) {
      const Ended ended = run_tessera(fmt::format(
          "train qa --output_dir {} --disable_tqdm --report_to none --config_name {} --tokenizer_name {} "
          "--train_file {} --max_length 96 --per_device_train_batch_size 4 --learning_rate 1e-3 --max_steps 6 "
          "--logging_steps 1 {}",
          out(family + name), config, kTestTokenizer, kTestRows, more));
      EXPECT_EQ(ended.status, 0) << more << "\n" << ended.output;
      return logged(ended.output, "loss");
    };
    const std::vector<double> expected = losses("cpu", "--device cpu");
    ASSERT_EQ(expected.size(), 6U);
    expect_close(losses("fp32", "--device cuda"), expected, 5e-3, "float32");
    expect_close(losses("off", "--device cuda --bf16 --strategy zero3 --offload_optimizer --offload_param"), expected,
                 0.1, "offloaded");
    const std::string exact = "--device cuda --bf16 --full_determinism ";
    const std::vector<double> whole = losses("whole", exact + "--save_strategy steps --save_steps 3");
    expect_close(whole, expected, 0.1, "bf16");
    EXPECT_EQ(losses("sharded", exact + "--strategy full_shard --gradient_checkpointing"), whole);
    EXPECT_EQ(losses("rest", fmt::format("{} --strategy zero2 --resume_from_checkpoint {}/checkpoint-3", exact,
                                         out(family + "whole"))),
              std::vector<double>(whole.begin() + 3, whole.end()));
  }
}

TEST_F(GpuCommand, GoesOnFromACheckpointAndRepeatsItselfWhereAsked) {
  for (const std::string spread :
       {"", "--strategy zero2 --offload_optimizer", "--strategy zero2 --offload_optimizer --units_on_device 2"}) {
    const std::string words = "--bf16 --full_determinism --tf32 false --save_strategy steps --save_steps 4 " + spread;
    const std::vector<double> whole = losses_of("whole", words);
    EXPECT_EQ(losses_of("again", words), whole) << spread;
    const Ended rest =
        bloom_on_gpu("rest", fmt::format("{} --resume_from_checkpoint {}/checkpoint-4", words, out("whole")));
    ASSERT_EQ(rest.status, 0) << rest.output;
    EXPECT_EQ(logged(rest.output, "loss"), std::vector<double>(whole.begin() + 4, whole.end())) << rest.output;
    for (const char* run : {"again", "rest"}) fs::remove_all(out(run));
    if (!spread.ends_with('2')) fs::remove_all(out("whole"));
  }
  const Json summary = record("whole").at("summary");
  for (const char* key : {"avg_mem_alloc_MB", "avg_mem_reserved_MB", "avg_mem_total_MB", "max_mem_alloc_MB"}) {
    EXPECT_GT(summary.at(key), 0) << key;
  }
}

// The copy to the host is still under way when the next step begins.
TEST_F(GpuCommand, ACheckpointHoldsWhatWasThereBeforeTheNextUpdate) {
  Json config = read_json_file(kTestConfig);
  config["hidden_size"] = 512;
  config["n_layer"] = 16;  // 600 MB of state: a copy takes as long as the passes
  write_file_atomically(folder_ / "large.json", config.dump());
  // The update comes after backward, or (of what stays on the GPU) within it.
  for (const std::string spread : {"", "--strategy zero2 --offload_optimizer --units_on_device 9 --max_grad_norm 0"}) {
    Json expected;
    for (const std::string mode : {"disabled", "async", "async_with_pinned_mem"}) {
      const Ended ended =
          bloom_on_gpu(mode, fmt::format("--config_name {} --bf16 --full_determinism --save_strategy steps "
                                         "--save_steps 4 --max_steps 6 --save_mode {} {}",
                                         out("large.json"), mode, spread));
      ASSERT_EQ(ended.status, 0) << ended.output;
      const fs::path index = fs::path(out(mode)) / "checkpoint-4" / "state.index.json";
      const Json checksums = read_json_file(index.string()).at("files").at("state-00000-of-00001.safetensors");
      if (expected.is_null()) expected = checksums;
      EXPECT_EQ(checksums, expected) << mode << " " << spread;
      fs::remove_all(out(mode));
    }
  }
}

TEST_F(GpuCommand, KeepsOnTheGpuWhatFitsIntoTheMemoryThatIsGiven) {
  const std::string offload = "--bf16 --strategy zero2 --offload_optimizer ";
  const Ended much = bloom_on_gpu("much", offload + "--gpu_memory auto");
  ASSERT_EQ(much.status, 0) << much.output;
  EXPECT_TRUE(contains(much.output, "--gpu_memory: 3 of 3 units stay on the GPU")) << much.output;
  EXPECT_EQ(record("much").at("facts").at("units_on_device"), 3);
  const Ended little = bloom_on_gpu("little", offload + "--gpu_memory 1M");
  EXPECT_EQ(little.status, 47) << little.output;
  EXPECT_TRUE(
      contains(little.output, "--gpu_memory: 1 MiB is not enough for every rank, even with everything offloaded: "))
      << little.output;
}

TEST_F(GpuCommand, SaysWhatWouldFitWhereMemoryIsOut) {
  Json config = read_json_file(kTestConfig);
  config["hidden_size"] = 512;
  config["n_layer"] = 8;  // 400 MB of state
  write_file_atomically(folder_ / "large.json", config.dump());
  ::setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.001", 1);
  const Ended ended = bloom_on_gpu("large", "--config_name " + out("large.json"));
  ::unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_EQ(ended.status, 47) << ended.output;
  EXPECT_TRUE(contains(ended.output, "out of memory: ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "the memory plan of a step (single): ")) << ended.output;
}

TEST_F(GpuCommand, EvaluatesToTheLossThatCpusFind) {
  for (const char* more : {"", "--bf16 --strategy zero3 --offload_param"}) {
    const Ended ended = run_tessera(
        fmt::format("evaluate --device cuda --model {}/train_command/model --tokenizer {} --validation_file {} "
                    "--max_length 160 --json {}",
                    kTestData, kTestTokenizer, kTestRows, more));
    ASSERT_EQ(ended.status, 0) << ended.output;
    const std::size_t begin = ended.output.find("{\"eval_loss\"");
    ASSERT_NE(begin, std::string::npos) << ended.output;
    const Json result = parse_json(ended.output.substr(begin, ended.output.find('\n', begin) - begin), "the output");
    EXPECT_NEAR(result.at("eval_loss").get<double>(), 6.92169, *more == '\0' ? 1e-4 : 1e-2);
    EXPECT_EQ(result.at("f1"), 0.0);
  }
}

TEST_F(GpuCommand, LearnsPicturesWithALossScale) {
  const Ended ended = run_tessera(fmt::format(
      "train resnet-tinyimagenet --device cuda --data_dir {}/experiments/tiny/pictures --image_size 64 --batch-size 16 "
      "--epochs 12 --step-size 8 --lr 0.01 --num-workers 4 --logging_strategy epoch --report_to none --output_dir {}",
      TESSERA_SOURCE_FOLDER, out("pictures")));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "convolutions in float16")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Epoch [12/12]")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Max memory used by tensors = ")) << ended.output;
  const std::vector<double> losses = logged(ended.output, "loss");
  ASSERT_EQ(losses.size(), 12U) << ended.output;
  EXPECT_LT(losses.back(), losses.front() / 2) << ended.output;
  // The scale starts far too high for this model and must come down: halved at each skipped step, early in the 72.
  const int skipped = record("pictures").at("summary").at("skipped_steps");
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 12);
}

// The next batch is copied to the GPU during a backward pass if a worker has made it: with workers, without, and after
// a resume in the middle of an epoch the same pictures come.
TEST_F(GpuCommand, PicturesAreTheSameHoweverTheyAreLoaded) {
  const auto train = [&](const std::string& name, const std::string& more) {
    const Ended ended = run_tessera(
        fmt::format("train resnet-tinyimagenet --device cuda --data_dir {}/experiments/tiny/pictures --image_size 64 "
                    "--batch-size 10 --epochs 2 --lr 0.001 --gradient_accumulation_steps 2 --full_determinism "
                    "--eval_strategy steps --eval_steps 2 --save_strategy steps --save_steps 3 --logging_steps 1 "
                    "--report_to none --output_dir {} {}",
                    TESSERA_SOURCE_FOLDER, out(name), more));
    EXPECT_EQ(ended.status, 0) << ended.output;
    return logged(ended.output, "loss");
  };
  const std::vector<double> plain = train("plain", "--num-workers 0"), ahead = train("ahead", "--num-workers 4");
  ASSERT_GE(plain.size(), 8U);
  EXPECT_EQ(plain, ahead);
  const std::vector<double> resumed =
      train("resumed", fmt::format("--num-workers 4 --resume_from_checkpoint {}/checkpoint-3", out("plain")));
  EXPECT_EQ(resumed, std::vector<double>(plain.begin() + 3, plain.end()));
}

}  // namespace
}  // namespace tessera
