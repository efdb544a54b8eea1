// `tessera plan` as users start it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kSource = TESSERA_SOURCE_FOLDER;
const std::string kBloom = "--config_name tests/data/plan/bloom_560m.json --bf16 ";
constexpr std::int64_t kNumParameters = 559'214'592;

Ended plan(const std::string& arguments) {
  return run_shell(fmt::format("cd {} && OMP_NUM_THREADS=1 {} plan {}", kSource, binary(), arguments));
}

Json planned(const std::string& arguments) {
  const Ended ended = plan(arguments + " --json");
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.status == 0 ? parse_json(ended.output, "the output") : Json::object();
}

Json row_of(const Json& report, const std::string& strategy) {
  for (const Json& row : report.at("rows")) {
    if (row.at("strategy") == strategy) return row;
  }
  ADD_FAILURE() << "no row " << strategy;
  return {};
}

std::int64_t bytes(const Json& row, const char* where, const char* what) {
  return row.at(where).at(what).get<std::int64_t>();
}

void expect_near(std::int64_t found, std::int64_t wanted, const std::string& what) {
  // Units are rounded up to whole blocks on every rank.
  EXPECT_NEAR(static_cast<double>(found), static_cast<double>(wanted), 0.005 * static_cast<double>(wanted)) << what;
}

// The sum of BLOOM-176B's activations does not fit in 64 bits, and must not come out as one that fits.
TEST(PlanCommand, AStepBeyondAllMeasureIsRefused) {
  const Ended ended = plan(
      "--config_name tests/data/plan/bloom_176b.json --per_device_train_batch_size 1000000 --max_seq_length 1000000 "
      "--strategy zero3 --ranks 8");
  EXPECT_EQ(ended.status, 47) << ended.output;
  EXPECT_TRUE(contains(ended.output,
                       "a step of this size takes more than an exbibyte (2^60 bytes) of memory: use a "
                       "smaller batch or shorter sequences"))
      << ended.output;
}

TEST(PlanCommand, PrintsWhatTheDocsShow) {
  std::ifstream page(kSource + "/docs/memory.md");
  std::string line, command, expected;
  int num_examples = 0;
  while (std::getline(page, line)) {
    if (line.starts_with("$ tessera plan ")) {
      command = line.substr(15);
      expected.clear();
    } else if (line == "```" && !command.empty()) {
      EXPECT_EQ(plan(command).output, expected) << command;
      command.clear();
      ++num_examples;
    } else {
      expected += line + "\n";
    }
  }
  EXPECT_GE(num_examples, 4);
}

TEST(PlanCommand, CountsBytesByTheTable) {
  const Json report = planned(kBloom + "--ranks 8 --optimizer adamw");
  EXPECT_EQ(report.at("num_parameters"), kNumParameters);
  EXPECT_EQ(report.at("num_units"), 25);
  const Json ddp = row_of(report, "ddp"), zero1 = row_of(report, "zero1"), zero2 = row_of(report, "zero2");
  const Json full = row_of(report, "full_shard"), grad_op = row_of(report, "shard_grad_op");
  expect_near(bytes(ddp, "between_steps", "parameters"), 2 * kNumParameters, "ddp");
  expect_near(bytes(ddp, "between_steps", "optimizer"), 10 * kNumParameters, "ddp");
  for (const Json& row : {zero1, zero2, full, grad_op}) {
    expect_near(bytes(row, "between_steps", "optimizer"), 10 * kNumParameters / 8, row.at("strategy"));
    EXPECT_LT(bytes(row, "device", "total"), bytes(ddp, "device", "total"));
  }
  expect_near(bytes(zero2, "between_steps", "parameters"), 2 * kNumParameters, "zero2");
  expect_near(bytes(full, "between_steps", "parameters"), 2 * kNumParameters / 8, "full_shard");
  EXPECT_LT(bytes(full, "device", "total"), bytes(grad_op, "device", "total"));
  for (const Json& row : report.at("rows")) {
    std::int64_t sum = 0;
    for (const char* what : {"parameters", "gradients", "optimizer", "in_flight", "activations"}) {
      EXPECT_GE(bytes(row, "device", what), 0) << row;
      sum += bytes(row, "device", what);
    }
    EXPECT_EQ(sum, bytes(row, "device", "total"));
    EXPECT_EQ(bytes(row, "host", "total"), 0);
  }
}

TEST(PlanCommand, KnowsOffloadOptimizersTypesAndHybrid) {
  const Json offloaded = row_of(planned(kBloom + "--strategy zero2 --ranks 2 --offload_optimizer"), "zero2");
  EXPECT_EQ(bytes(offloaded, "device", "optimizer"), 0);
  // Two moments in float32; gradient, the values for the device and what they lack of the master in 16 bits, for half
  // the parameters.
  expect_near(bytes(offloaded, "host", "total"), (8 + 2 + 2 + 2) * kNumParameters / 2, "host");
  const Json delayed =
      row_of(planned(kBloom + "--strategy zero2 --ranks 2 --offload_optimizer --delayed_update"), "zero2");
  expect_near(bytes(delayed, "host", "total"), (12 + 2 + 2) * kNumParameters / 2, "the master in float32");
  const Json all = row_of(planned(kBloom + "--strategy zero3 --ranks 2 --offload_optimizer --offload_param"), "zero3");
  EXPECT_EQ(bytes(all, "between_steps", "total"), 0);
  const Json sgd = row_of(planned(kBloom + "--strategy ddp --optimizer sgd --momentum 0.9"), "ddp");
  expect_near(bytes(sgd, "between_steps", "optimizer"), 6 * kNumParameters, "half a master and one moment");
  const Json plain =
      row_of(planned("--config_name tests/data/plan/bloom_560m.json --strategy ddp --optimizer sgd"), "ddp");
  EXPECT_EQ(bytes(plain, "between_steps", "optimizer"), 0) << "float32 parameters are their own master";
  const Json hybrid = row_of(planned(kBloom + "--strategy hybrid_shard --ranks 8 --ranks_per_node 2"), "hybrid_shard");
  expect_near(bytes(hybrid, "between_steps", "optimizer"), 10 * kNumParameters / 2, "split over a node");
}

TEST(PlanCommand, TakesFilesOfDeepSpeedAndFsdp) {
  const std::string model = "--config_name tests/data/plan/bloom_560m.json --ranks 2 ";
  const auto expect_same = [&](const std::string& file, const std::string& words) {
    const Ended ended = plan(model + file + " 2>/dev/null");
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_EQ(ended.output, plan(model + words).output) << file;
  };
  expect_same(
      R"(--deepspeed '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "train_batch_size": 32,
      "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}')",
      "--strategy zero2 --offload_optimizer --bf16 --gradient_accumulation_steps 4");
  expect_same(R"(--fsdp 'full_shard offload' --fsdp_config '{"mixed_precision": {"param_dtype": "bf16"}}')",
              "--strategy full_shard --offload_param --offload_optimizer --bf16");
  expect_same(R"(--fsdp_config '{"activation_checkpointing": true, "offload_to_cpu": true}')",
              "--strategy full_shard,shard_grad_op,hybrid_shard,hybrid_shard_zero2 --gradient_checkpointing "
              "--offload_param --offload_optimizer; echo left out, because these settings do not allow them: no_shard");
  const Ended unwrapped = plan(model + R"(--fsdp full_shard --fsdp_config '{"auto_wrap_policy": "NO_WRAP"}')");
  EXPECT_TRUE(
      contains(unwrapped.output, "auto_wrap_policy is not taken over: what is shown is for the model's own blocks"))
      << unwrapped.output;
  const Ended both = plan(model + R"(--strategy zero3 --deepspeed '{"zero_optimization": {"stage": 2}}')");
  EXPECT_EQ(both.status, 2) << both.output;
  EXPECT_TRUE(contains(both.output, "strategy is zero3 (command line) and zero2 (--deepspeed")) << both.output;
}

TEST(PlanCommand, CountsActivationsByTokens) {
  const auto activations = [](const std::string& more) {
    return bytes(row_of(planned(kBloom + "--strategy ddp " + more), "ddp"), "device", "activations");
  };
  EXPECT_EQ(activations("--tokens 4096"), activations("--per_device_train_batch_size 8 --max_seq_length 512"));
  const std::int64_t small = activations("--tokens 4096"), large = activations("--tokens 32768");
  EXPECT_GT(large, 5 * small);
  EXPECT_LT(activations("--tokens 32768 --gradient_checkpointing"), large / 4);
}

TEST(PlanCommand, KnowsPicturesAndModelFolders) {
  const Json resnet = planned("resnet50 --fp16 --per_device_train_batch_size 64 --image_size 64 --num_classes 200");
  EXPECT_EQ(resnet.at("num_units"), 17);
  EXPECT_EQ(resnet.at("num_parameters"), 23'917'832);
  EXPECT_GT(bytes(row_of(resnet, "ddp"), "device", "activations"), 0);
  EXPECT_EQ(planned("tests/data/models/folder --tokens 10").at("model"), "bloom");
}

// 176 billion parameters: nothing of the model is allocated.
TEST(PlanCommand, PlansModelsThatFitNowhere) {
  const Ended ended =
      plan("--config_name tests/data/plan/bloom_176b.json --bf16 --strategy full_shard --ranks 384 --memory 80G");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "176,247,271,424 parameters")) << ended.output;
}

TEST(PlanCommand, SaysWhatFitsAndWhatWouldMakeItFit) {
  const Ended fits = plan(kBloom + "--ranks 8 --memory 8G");
  EXPECT_TRUE(contains(fits.output, "\nstrategies that fit in 8 GiB: ")) << fits.output;
  const std::string strategy = "--strategy ddp --ranks 4 --tokens 16384 ";
  const Json report = planned(kBloom + strategy + "--memory 10G");
  EXPECT_EQ(row_of(report, "ddp").at("fits"), false);
  ASSERT_FALSE(report.at("advice").empty());
  for (const Json& advice : report.at("advice")) {
    // The advice names the settings; if followed, the run fits.
    std::string words = kBloom + "--ranks 4 --memory 10G " + advice.at("change").get<std::string>();
    if (!contains(words, "--strategy")) words += " --strategy ddp";
    if (!contains(words, "--per_device_train_batch_size")) words += " --tokens 16384";
    const Json followed = planned(words);
    EXPECT_EQ(followed.at("rows").size(), 1);
    EXPECT_EQ(followed.at("rows")[0].at("fits"), true) << words;
    EXPECT_EQ(followed.at("rows")[0].at("device"), advice.at("device")) << words;
  }
  const Ended hopeless = plan(kBloom + "--strategy ddp --memory 100M");
  EXPECT_TRUE(contains(hopeless.output, "; no change of batch, checkpointing")) << hopeless.output;
}

TEST(PlanCommand, RefusesBadInputClearly) {
  const auto expect_refused = [](const std::string& arguments, const std::string& part) {
    const Ended ended = plan(arguments);
    EXPECT_EQ(ended.status, 2) << arguments << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, part)) << arguments << "\n" << ended.output;
  };
  expect_refused("", "takes one MODEL");
  expect_refused(kBloom + "resnet50", "takes one MODEL");
  expect_refused(kBloom + "--ranks 0", "--ranks");
  expect_refused(kBloom + "--ranks -3", "--ranks");
  expect_refused(kBloom + "--strategy zero9", "strategy 'zero9' is not known");
  expect_refused(kBloom + "--strategy ddp,", "strategy '' is not known");
  expect_refused(kBloom + "--strategy single --ranks 2", "'single' is for one rank");
  expect_refused(kBloom + "--strategy zero2 --offload_param", "offload_param needs a strategy that splits");
  expect_refused(kBloom + "--tokens 0", "--tokens");
  expect_refused(kBloom + "--tokens 10 --batch_size 2", "give one");
  expect_refused(kBloom + "--fp16", "--bf16 and --fp16");
  expect_refused(kBloom + "--ranks 8 --ranks_per_node 3", "every node needs the same number");
  expect_refused(kBloom + "--memory lots", "--memory");
  expect_refused(kBloom + "--momentum 0.9", "--momentum: --optim adamw_torch_fused has none");
  expect_refused(kBloom + "--device cpu --offload_optimizer", "a CPU's memory is the host's");
  expect_refused(kBloom + "--image_size 64", "only for resnet50");
  expect_refused("resnet50 --tokens 5", "has no tokens");
  expect_refused("--config_name tests/data/plan/none.json", "none.json");
  const TestFolder folder;
  expect_refused(folder.path().string(), "config.json");
  write_file_atomically(folder / "config.json", R"({"model_type": "mixtral"})");
  expect_refused(folder.path().string(), "mixtral");
}

}  // namespace
}  // namespace tessera
