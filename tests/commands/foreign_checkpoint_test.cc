// Runs that other programs began: resumed from their checkpoints, they continue with the losses of the original
// (tools/references/foreign_checkpoints.py).
#include <cstring>
#include <fstream>
#include <numeric>

#include "commands/train_command.h"
#include "core/file.h"
#include "support/weight_bytes.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kForeign = kTestData + "/foreign";

class ForeignCheckpointCommand : public TrainCommandTest {
 protected:
  // Four rows per step, whatever the number of ranks, with the original's settings.
  Ended resume(const std::string& checkpoint, const std::string& more = "", int num_ranks = 1) const {
    const bool is_qwen3 = checkpoint.find("/qwen3_") != std::string::npos;
    const Json reference = read_json_file(kForeign + "/numbers.json");
    std::string arguments;
    for (const auto& [key, value] : reference.at("arguments").items()) {
      arguments += fmt::format("--{} {} ", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    return run_tessera(
        fmt::format("train {} --device cpu --output_dir {} --disable_tqdm --report_to none "
                    "--model_name_or_path {}/{} --tokenizer_name {} --train_file {} --max_train_samples {} "
                    "--max_length {} --max_steps {} --label_mode full --no_shuffle --logging_steps 1 "
                    "--save_strategy no --gradient_accumulation_steps 1 --per_device_train_batch_size {} {} "
                    "--resume_from_checkpoint {} {}",
                    is_qwen3 ? "qa" : "bloom-qa", out("out"), kForeign, is_qwen3 ? "qwen3_model" : "model",
                    kTestTokenizer, kTestRows, reference.at("num_rows").dump(), reference.at("max_length").dump(),
                    reference.at("num_steps").dump(), 4 / num_ranks, arguments, checkpoint, more),
        num_ranks == 1 ? 0 : num_ranks);
  }

  // A copy that a test may damage.
  fs::path copy_of(const std::string& name) const {
    fs::copy(kForeign + "/" + name, folder_ / name, fs::copy_options::recursive);
    return folder_ / name;
  }

  // It is refused with one message that has these parts.
  void expect_refused(const fs::path& checkpoint, const std::vector<std::string>& parts) const {
    const Ended ended = resume(checkpoint.string());
    EXPECT_EQ(ended.status, 2) << ended.output;
    for (const std::string& part : parts) EXPECT_TRUE(contains(ended.output, part)) << part << "\n" << ended.output;
  }
};

// The steps after the checkpoint's. Losses are logged with four digits; the norm of a gradient shows more. The order of
// float32 sums changes it by 3e-7, and one bias that lost its first moment by 6e-4.
void expect_continued(const Ended& ended, const std::string& name) {
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Json reference = read_json_file(kForeign + "/numbers.json");
  const auto step = reference.at("save_step").get<std::size_t>();
  const Json& numbers = reference.at("cases").at(name);
  const std::vector<double> losses = logged(ended.output, "loss"), norms = logged(ended.output, "grad_norm");
  ASSERT_EQ(losses.size(), numbers.at("loss").size() - step) << ended.output;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], numbers.at("loss")[step + i].get<double>(), 6e-5) << name << ", step " << step + i + 1;
    const double norm = numbers.at("grad_norm")[step + i].get<double>();
    EXPECT_NEAR(norms[i], norm, 1e-5 * norm) << name << ", step " << step + i + 1;
  }
  // The mean of the losses that are known: a file without a history knows none before the checkpoint.
  std::vector<double> known = losses;
  if (name.find("trainer") != std::string::npos) known = numbers.at("loss").get<std::vector<double>>();
  const double mean = std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
  EXPECT_NEAR(logged(ended.output, "train_loss").at(0), mean, 1e-4) << name;
  // 4 rows a step, whatever the file says about the epoch.
  const double ratio =
      logged(ended.output, "train_samples_per_second").at(0) / logged(ended.output, "train_steps_per_second").at(0);
  EXPECT_NEAR(ratio, 4, 0.05) << name << ended.output;
}

struct ForeignCase {
  const char* name;
  const char* program;
};

class ForeignRun : public ForeignCheckpointCommand, public testing::WithParamInterface<ForeignCase> {};

TEST_P(ForeignRun, ContinuesWithTheLossesOfTheOriginal) {
  const auto& [name, program] = GetParam();
  const std::string checkpoint = kForeign + "/" + name;
  const Ended alone = resume(checkpoint);
  expect_continued(alone, name);
  EXPECT_TRUE(
      contains(alone.output, fmt::format("resuming after step 5 from {}, a checkpoint of {}\n", checkpoint, program)))
      << alone.output;
  EXPECT_TRUE(contains(alone.output, "not taken over: the states of Python's random generators")) << alone.output;
  expect_continued(resume(checkpoint, "--strategy full_shard", 2), name);
}

INSTANTIATE_TEST_SUITE_P(
    All, ForeignRun,
    testing::Values(ForeignCase{"trainer", "Hugging Face's Trainer"},
                    ForeignCase{"trainer_bin", "Hugging Face's Trainer"}, ForeignCase{"fsdp", "accelerate's FSDP"},
                    ForeignCase{"dcp", "torch.distributed.checkpoint"}, ForeignCase{"zero1", "DeepSpeed"},
                    ForeignCase{"zero2", "DeepSpeed"}, ForeignCase{"zero3", "DeepSpeed"},
                    ForeignCase{"qwen3_trainer", "Hugging Face's Trainer"},
                    ForeignCase{"qwen3_fsdp", "accelerate's FSDP"}, ForeignCase{"qwen3_zero3", "DeepSpeed"}),
    [](const auto& each) { return std::string(each.param.name); });

// Step, epoch and history go on; what the resumed run saves is an ordinary checkpoint.
TEST_F(ForeignCheckpointCommand, TheRunIsOurOwnFromThereOn) {
  const Ended ended = resume(kForeign + "/trainer", "--save_strategy steps --save_steps 7");
  expect_continued(ended, "trainer");
  const Json state = read_json_file(folder_ / "out/checkpoint-7/trainer_state.json");
  EXPECT_EQ(state.at("global_step"), 7);
  EXPECT_EQ(state.at("log_history").size(), 7U) << state.dump(1);
  EXPECT_EQ(state.at("log_history")[0].at("loss"), 6.9658);
  const Json& own = state.at("stateful_callbacks").at("Tessera").at("attributes");
  EXPECT_EQ(own.at("num_advanced"), 7);
  EXPECT_NEAR(own.at("total_loss").get<double>(), 6.9658 + 6.9548 + 6.8841 + 6.8107 + 6.7589 + 6.7287 + 6.6270, 1e-3);
  const Ended rest = resume(out("out") + "/checkpoint-7");
  ASSERT_EQ(rest.status, 0) << rest.output;
  EXPECT_EQ(logged(rest.output, "grad_norm"), std::vector<double>{logged(ended.output, "grad_norm").back()});
}

// Two steps were skipped before the checkpoint, and the scale doubles in the step after it: a run that began with
// another scale, or at another place of its window, would not. The masters are taken: float16 weights have three
// digits.
TEST_F(ForeignCheckpointCommand, ALossScaleGoesOnWhereDeepSpeedLeftIt) {
  std::ofstream(folder_ / "ds.json") << R"({"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 2},
    "fp16": {"enabled": true, "initial_scale_power": 20, "loss_scale_window": 3, "hysteresis": 1}})";
  const Ended ended =
      resume(kForeign + "/zero2_fp16", "--save_strategy steps --save_steps 6 --deepspeed " + out("ds.json"));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Json numbers = read_json_file(kForeign + "/numbers.json").at("cases").at("zero2_fp16");
  EXPECT_NEAR(logged(ended.output, "loss").at(0), numbers.at("loss")[5].get<double>(), 1e-3) << ended.output;
  EXPECT_NEAR(logged(ended.output, "grad_norm").at(0), numbers.at("grad_norm")[5].get<double>(), 1e-3) << ended.output;
  const Json state = read_json_file(folder_ / "out/checkpoint-6/state.index.json").at("numbers");
  EXPECT_EQ(state,
            Json({{"hysteresis", 1.0}, {"loss_scale", 524288.0}, {"num_clean_steps", 4.0}, {"num_updates", 4.0}}));
}

// Weights of another type are converted while they are read.
TEST_F(ForeignCheckpointCommand, HalfWeightsBecomeFloat32) {
  const fs::path folder = copy_of("trainer");
  const Ended converted = run_tessera(fmt::format("convert --dtype bfloat16 {} {}", folder.string(), out("half")));
  ASSERT_EQ(converted.status, 0) << converted.output;
  fs::copy_file(folder_ / "half/model.safetensors", folder / "model.safetensors", fs::copy_options::overwrite_existing);
  const Ended ended = resume(folder.string(), "--strategy zero3", 2);
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Json numbers = read_json_file(kForeign + "/numbers.json").at("cases").at("trainer");
  const std::vector<double> norms = logged(ended.output, "grad_norm");
  ASSERT_EQ(norms.size(), 3U) << ended.output;
  EXPECT_NEAR(norms[0], numbers.at("grad_norm")[5].get<double>(), 5e-3) << "bfloat16 has three digits";
}

TEST_F(ForeignCheckpointCommand, AnotherProgramsIsNotTheLatest) {
  fs::create_directories(folder_ / "out");
  fs::copy(kForeign + "/trainer", folder_ / "out" / "checkpoint-5", fs::copy_options::recursive);
  const Ended ended = resume("latest");
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_TRUE(contains(ended.output, "checkpoint-5 is a checkpoint of Hugging Face's Trainer: name it to resume"))
      << ended.output;
}

TEST_F(ForeignCheckpointCommand, ATrainersThatIsDamagedOrOfAnotherModelIsRefused) {
  const fs::path folder = copy_of("trainer");
  fs::rename(folder / "optimizer.pt", folder_ / "optimizer.pt");
  expect_refused(folder, {"trainer: optimizer.pt is missing"});
  std::ofstream(folder / "optimizer.pt") << read_file(folder_ / "optimizer.pt").substr(0, 50000);
  expect_refused(folder, {"optimizer.pt: broken zip archive"});
  fs::copy_file(folder_ / "optimizer.pt", folder / "optimizer.pt", fs::copy_options::overwrite_existing);
  fs::copy_file(kTestData + "/train_command/model/model.safetensors", folder / "model.safetensors",
                fs::copy_options::overwrite_existing);
  expect_refused(folder, {"tensor 'model.transformer.", "there and [", "in the model"});
}

TEST_F(ForeignCheckpointCommand, ShardsThatAreDamagedAreRefusedByFileAndTensor) {
  const fs::path folder = copy_of("dcp");
  fs::resize_file(folder / "__1_0.distcp", 200000);
  expect_refused(folder, {"__1_0.distcp: truncated: 'optim.state.transformer."});
  fs::remove(folder / "__1_0.distcp");
  expect_refused(folder, {"__1_0.distcp: No such file or directory"});
  const fs::path fsdp = copy_of("fsdp");
  fs::remove_all(fsdp / "optimizer_0");
  expect_refused(fsdp, {"fsdp: optimizer_0/ is missing"});
  const fs::path zero = copy_of("zero3");
  fs::remove(zero / "global_step5/zero_pp_rank_2_mp_rank_00_optim_states.pt");
  expect_refused(zero, {"zero_pp_rank_2_mp_rank_00_optim_states.pt: No such file or directory"});
  std::ofstream(zero / "global_step5/mp_rank_01_model_states.pt") << "x";
  expect_refused(zero, {"mp_rank_01_model_states.pt: tensor parallelism is not supported"});
}

// In the places that take a model folder, if a config.json lies beside it.
TEST_F(ForeignCheckpointCommand, OnesWeightsAreShownAndConverted) {
  for (const char* name : {"dcp", "fsdp", "zero2", "zero3"}) {
    const fs::path folder = copy_of(name);
    fs::copy_file(kForeign + "/model/config.json", folder / "config.json");
    const Ended shown = run_tessera("inspect " + folder.string());
    EXPECT_EQ(shown.status, 0) << shown.output;
    const Ended converted = run_tessera(fmt::format("convert {} {}", folder.string(), out(fmt::format("{}-c", name))));
    EXPECT_EQ(converted.status, 0) << converted.output;
    const Weights found = Weights::open(folder_ / fmt::format("{}-c", name));
    const Weights wanted = Weights::open(kForeign + "/trainer");
    EXPECT_GE(found.entries().size(), wanted.entries().size()) << name;  // the tied head may be there twice
    for (const WeightEntry& entry : wanted.entries()) {
      const WeightEntry* same = found.find(entry.name);
      ASSERT_NE(same, nullptr) << name << ": " << entry.name;
      for (std::int64_t i = 0; i < entry.numel; ++i) {
        float ours = 0, theirs = 0;
        std::memcpy(&ours, bytes_of(found, *same).data() + i * 4, 4);
        std::memcpy(&theirs, bytes_of(wanted, entry).data() + i * 4, 4);
        ASSERT_NEAR(ours, theirs, 2e-4) << name << ": " << entry.name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
