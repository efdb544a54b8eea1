// Every family of text models through the commands that users have: a config or a folder is enough.
#include <fstream>

#include "commands/train_command.h"
#include "core/file.h"
#include "support/small_decoder_config.h"

namespace tessera {
namespace {

struct FamilyCase {
  const char* model_type;
  const char* block_class;  // what people give to FSDP
};
void PrintTo(const FamilyCase& c, std::ostream* out) {
  *out << c.model_type;
}

constexpr FamilyCase kFamilyCases[] = {{"llama", "LlamaDecoderLayer"},        {"mistral", "MistralDecoderLayer"},
                                       {"qwen2", "Qwen2DecoderLayer"},        {"qwen3", "Qwen3DecoderLayer"},
                                       {"gemma3_text", "Gemma3DecoderLayer"}, {"phi3", "Phi3DecoderLayer"},
                                       {"olmo2", "Olmo2DecoderLayer"},        {"olmo3", "Olmo3DecoderLayer"},
                                       {"smollm3", "SmolLM3DecoderLayer"},    {"gpt2", "GPT2Block"}};

class QaCommandTest : public TrainCommandTest {
 protected:
  // A config.json from which a model is trained.
  std::string config_file(const std::string& family, const Json& changes = Json::object()) const {
    Json config = small_decoder_config(family, 0, 1024);
    config[family == "gpt2" ? "n_positions" : "max_position_embeddings"] = 256;
    config.update(changes);
    const std::string path = out(family + ".json");
    std::ofstream(path) << config.dump();
    return path;
  }
  Ended train_qa(const std::string& name, const std::string& more, int num_ranks = 0) const {
    return run_tessera(
        fmt::format("train qa --device cpu --output_dir {} --disable_tqdm --report_to none --tokenizer_name {} "
                    "--train_file {} --max_length 96 --max_train_samples 12 --per_device_train_batch_size {} "
                    "--learning_rate 1e-2 --logging_steps 1 --save_strategy no {}",
                    out(name), kTestTokenizer, kTestRows, num_ranks > 1 ? 4 / num_ranks : 4, more),
        num_ranks);
  }
};

class QaFamily : public QaCommandTest, public testing::WithParamInterface<FamilyCase> {};

TEST_P(QaFamily, IsTrainedFromAConfigAndReadFromItsFolder) {
  const auto& [family, block_class] = GetParam();
  const std::string fsdp =
      fmt::format("--fsdp 'full_shard auto_wrap' --fsdp_transformer_layer_cls_to_wrap {}", block_class);
  const Ended trained =
      train_qa("model", fmt::format("--config_name {} --max_steps 3 {}", config_file(family), fsdp), 2);
  ASSERT_EQ(trained.status, 0) << trained.output;
  const std::vector<double> losses = logged(trained.output, "loss");
  ASSERT_EQ(losses.size(), 3u) << trained.output;
  EXPECT_LT(losses.back(), losses.front());

  const Json config = read_json_file(folder_ / "model/config.json");
  EXPECT_EQ(config.at("model_type"), family);
  EXPECT_FALSE(config.at("architectures").empty());

  const Ended evaluated =
      run_tessera(fmt::format("evaluate --device cpu --model {} --validation_file {} --max_length 96 "
                              "--max_eval_samples 4 --max_new_tokens 4 --json",
                              out("model"), kTestRows));
  EXPECT_EQ(evaluated.status, 0) << evaluated.output;
  const Ended planned =
      run_tessera(fmt::format("plan {} --ranks 2 --strategy zero3 --max_seq_length 64", out("model")));
  EXPECT_EQ(planned.status, 0) << planned.output;
  const Ended answered = run_tessera(
      fmt::format("generate --device cpu --model {} --prompt Question: --max_new_tokens 4 --json", out("model")));
  EXPECT_EQ(answered.status, 0) << answered.output;
  // The folder goes on being trained, under another strategy.
  const Ended again =
      run_tessera(fmt::format("train qa --device cpu --model_name_or_path {} --train_file {} --output_dir {} "
                              "--max_length 96 --max_train_samples 4 "
                              "--max_steps 1 --strategy single --save_strategy no --report_to none --disable_tqdm",
                              out("model"), kTestRows, out("again")));
  EXPECT_EQ(again.status, 0) << again.output;
}

INSTANTIATE_TEST_SUITE_P(All, QaFamily, testing::ValuesIn(kFamilyCases),
                         [](const auto& tested) { return tested.param.model_type; });

class QaCommand : public QaCommandTest {};

// With 1, 2 and 4 ranks, offloaded and recomputed; those of as many ranks bit for bit.
TEST_F(QaCommand, StrategiesPrintTheSameLosses) {
  const std::string config = fmt::format("--config_name {} --max_steps 4 ", config_file("gemma3_text"));
  struct Spread {
    int num_ranks;
    const char* words;
  };
  const Ended one = train_qa("one", config + "--strategy single");
  ASSERT_EQ(one.status, 0) << one.output;
  const std::vector<double> expected = logged(one.output, "loss");
  int num_runs = 0;
  for (const int num_ranks : {2, 4}) {
    std::vector<double> first;
    for (const char* words : {"--strategy ddp", "--strategy zero2 --offload_optimizer", "--strategy full_shard",
                              "--strategy zero3 --offload_param --offload_optimizer --gradient_checkpointing"}) {
      const Ended ended = train_qa(fmt::format("many{}", num_runs++), config + words, num_ranks);
      ASSERT_EQ(ended.status, 0) << ended.output;
      const std::vector<double> losses = logged(ended.output, "loss");
      ASSERT_EQ(losses.size(), 4u) << ended.output;
      for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(losses[i], expected[i], 2e-4) << words << ", " << num_ranks;
      if (first.empty()) first = logged(ended.output, "grad_norm");
      EXPECT_EQ(logged(ended.output, "grad_norm"), first) << words << ", " << num_ranks;
    }
  }
}

TEST_F(QaCommand, InspectAndConvertKnowTheFamilies) {
  const Ended trained = train_qa("model", fmt::format("--config_name {} --max_steps 1", config_file("phi3")));
  ASSERT_EQ(trained.status, 0) << trained.output;
  const Ended inspected = run_tessera("inspect " + out("model"));
  EXPECT_EQ(inspected.status, 0) << inspected.output;
  EXPECT_TRUE(contains(inspected.output, "Phi3ForCausalLM")) << inspected.output;
  const Ended converted = run_tessera(fmt::format("convert {} {} --dtype bfloat16", out("model"), out("half")));
  EXPECT_EQ(converted.status, 0) << converted.output;
  const Ended answered =
      run_tessera(fmt::format("generate --device cpu --model {} --prompt Question: --max_new_tokens 4", out("half")));
  EXPECT_EQ(answered.status, 0) << answered.output;
}

TEST_F(QaCommand, EndsWithOneMessageAtWhatItDoesNotSupport) {
  const auto expect_refused = [&](const std::string& words, const std::vector<std::string>& parts) {
    const Ended ended = train_qa("refused", words);
    EXPECT_EQ(ended.status, 2) << ended.output;
    for (const std::string& part : parts) EXPECT_TRUE(contains(ended.output, part)) << part << "\n" << ended.output;
  };
  expect_refused("--config_name " + config_file("llama", {{"model_type", "mixtral"}}), {"mixtral", "llama", "qwen3"});
  expect_refused("--config_name " + config_file("llama", {{"hidden_act", "relu"}}), {"hidden_act", "silu"});
  expect_refused("--config_name " + config_file("llama", {{"rope_scaling", {{"type", "ntk"}, {"factor", 2}}}}),
                 {"rope_scaling", "ntk", "llama3"});
  expect_refused("--config_name " + config_file("llama", {{"quantization_config", {{"bits", 4}}}}),
                 {"quantization_config"});
  expect_refused("--config_name " + config_file("llama", {{"num_key_value_heads", 3}}), {"num_key_value_heads"});
  expect_refused("--config_name " + config_file("gpt2", {{"n_positions", 16}}),
                 {"positions for 16", "--max_length 16"});
  expect_refused("--config_name " + config_file("llama") + " --strategy full_shard --wrap_classes BloomBlock",
                 {"BloomBlock", "LlamaDecoderLayer"});
}

}  // namespace
}  // namespace tessera
