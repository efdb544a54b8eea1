// Runs from models and settings that would only make numbers that are none: refused, or told by the right name.
#include <fstream>

#include "commands/train_command.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kModel = kTestData + "/train_command/model";
const std::string kTensor = "transformer.h.1.mlp.dense_h_to_4h.weight";

class DamagedModel : public TrainCommandTest {
 protected:
  // A copy of the model whose tensor has this float32 as its sixth value.
  std::string damaged_model(float value) const {
    const fs::path folder = folder_ / "damaged";
    fs::remove_all(folder);
    fs::copy(kModel, folder);
    const Weights weights = Weights::open(folder);
    const WeightEntry* entry = weights.find(kTensor);
    EXPECT_NE(entry, nullptr);
    EXPECT_EQ(entry->type, WeightType::kF32);
    std::fstream file(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(entry->offset_bytes + 5 * 4);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
    return folder.string();
  }
  std::string train_words(const std::string& model) const {
    return fmt::format(
        "train bloom-qa --device cpu --output_dir {} --disable_tqdm --report_to none --model_name_or_path {} "
        "--tokenizer_name {} --train_file {} --max_length 160 --max_train_samples 8 --per_device_train_batch_size 2 "
        "--save_strategy no",
        out("run"), model, kTestTokenizer, kTestRows);
  }
};

TEST_F(DamagedModel, IsRefusedBeforeTheFirstStepWithItsTensor) {
  const std::string model = damaged_model(std::numeric_limits<float>::quiet_NaN());
  const std::string expected =
      fmt::format("{}/model.safetensors: the weights are damaged: there are values that are not numbers (NaN) in {};",
                  model, kTensor);
  const std::string evaluate = fmt::format("evaluate --device cpu --model {} --tokenizer {} --validation_file {}",
                                           model, kTestTokenizer, kTestRows);
  const std::string generate = fmt::format("generate --device cpu --model {} --prompt_ids [1,2]", model);
  for (const Ended& ended :
       {run_tessera(train_words(model)), run_tessera(train_words(model) + " --strategy zero3", 2),
        run_tessera(train_words(model) + " --bf16"), run_tessera(evaluate), run_tessera(generate)}) {
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_TRUE(contains(ended.output, expected)) << ended.output;
    EXPECT_FALSE(contains(ended.output, "learning rate")) << ended.output;
  }
}

TEST_F(DamagedModel, InfinityIsDamageToo) {
  const Ended ended = run_tessera(train_words(damaged_model(-std::numeric_limits<float>::infinity())));
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_TRUE(contains(ended.output, "there are values that are infinite in " + kTensor)) << ended.output;
}

// A rate that float32 cannot hold makes every weight NaN in the first step; the run was told to go on.
TEST_F(DamagedModel, ACheckpointOfARunThatDivergedIsNotResumed) {
  const std::string diverging =
      "--learning_rate 1e300 --max_grad_norm 0 --lr_scheduler_type constant --stop_on_nan false --save_strategy steps "
      "--save_steps 1 --max_steps ";
  const Ended first = bloom("run", diverging + "2");
  EXPECT_EQ(first.status, 0) << first.output;
  for (const int num_ranks : {0, 2}) {
    const Ended resumed = bloom("run", diverging + "4 --resume_from_checkpoint true", num_ranks);
    EXPECT_EQ(resumed.status, 2) << resumed.output;
    EXPECT_TRUE(contains(resumed.output, "checkpoint-2: tensor 'model.transformer.")) << resumed.output;
    EXPECT_TRUE(contains(resumed.output, "is damaged: there are values that are")) << resumed.output;
  }
}

// The rows of the token table that the first batch does not use have no gradient.
TEST_F(DamagedModel, AnEpsilonOfNothingIsNamedAsTheCause) {
  const Ended ended = gpt("run", "--adam_epsilon 0");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_TRUE(contains(ended.output, "--adam_epsilon=0 (command line): a parameter whose gradients were all 0"))
      << ended.output;
  EXPECT_TRUE(
      contains(ended.output, "; --adam_epsilon is 0, so that a parameter whose gradients were all 0 becomes NaN"))
      << ended.output;
  EXPECT_FALSE(contains(ended.output, "a lower learning rate")) << ended.output;
}

}  // namespace
}  // namespace tessera
