// `tessera generate` as users start it, against what transformers generates from the same folder.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kModelData = TESSERA_TEST_DATA_FOLDER;
const std::string kModelFolder = kModelData + "/models/folder";

std::string quoted(const std::string& word) {
  return "'" + word + "'";  // no test's word contains a quote
}

Ended generate(const std::string& arguments) {
  return run_shell(fmt::format("OMP_NUM_THREADS=1 {} generate --device cpu {}", binary(), arguments));
}

Json generated(const std::string& arguments) {
  const Ended ended = generate(arguments + " --json");
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.status == 0 ? parse_json(ended.output, "the output") : Json::object();
}

const Json& expected() {
  static const Json cases = read_json_file(kModelData + "/models/folder_expected.json");
  return cases;
}

TEST(GenerateCommand, ContinuesTextAsTransformersDoes) {
  for (const Json& wanted : expected()) {
    const Json found = generated(fmt::format("--model {} --max_new_tokens 12 --logits --prompt {}", kModelFolder,
                                             quoted(wanted.at("prompt").get<std::string>())));
    EXPECT_EQ(found.at("ids"), wanted.at("greedy"));
    EXPECT_EQ(found.at("text"), wanted.at("greedy_text"));
    EXPECT_EQ(found.at("num_prompt_ids"), wanted.at("prompt_ids").size());
    const auto ours = found.at("logits").get<std::vector<double>>();
    const auto theirs = wanted.at("logits").get<std::vector<double>>();
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-4) << i;
  }
}

TEST(GenerateCommand, DrawsWhatTransformersDrawsForTheSameSeed) {
  for (const Json& wanted : expected()) {
    const Json found = generated(fmt::format(
        "--model {} --max_new_tokens 12 --do_sample --temperature 0.9 --top_k 40 --top_p 0.95 --seed 3 --prompt_ids {}",
        kModelFolder, quoted(wanted.at("prompt_ids").dump())));
    EXPECT_EQ(found.at("ids"), wanted.at("drawn"));
  }
}

TEST(GenerateCommand, NeedsNoTokenizerForIdsAndReadsEveryFormOfAFolder) {
  Json first;
  for (const char* name : {"bloom_safetensors", "bloom_sharded", "bloom_bin", "bloom_bin_sharded", "bloom_base"}) {
    const Json found = generated(
        fmt::format("--model {}/model_folder/{} --prompt_ids [5,9,33] --max_new_tokens 6 --logits", kModelData, name));
    EXPECT_TRUE(found.at("text").is_null()) << name;
    if (first.is_null()) first = found;
    EXPECT_EQ(found.at("ids"), first.at("ids")) << name;
    // These hold the same weights in float32, bf16 and fp16.
    for (std::size_t i = 0; i < 96; ++i) {
      EXPECT_NEAR(found.at("logits").at(i).get<double>(), first.at("logits").at(i).get<double>(), 0.03) << name;
    }
  }
}

TEST(GenerateCommand, WithoutJsonPrintsTheTextOrTheIds) {
  const Ended text = generate(fmt::format("--model {} --max_new_tokens 12 --prompt x", kModelFolder));
  EXPECT_EQ(text.output, expected().at(2).at("greedy_text").get<std::string>() + "\n");
  const Ended ids =
      generate(fmt::format("--model {}/model_folder/bloom_base --prompt_ids [5] --max_new_tokens 1", kModelData));
  EXPECT_TRUE(ids.output.starts_with("[5,")) << ids.output;
}

// A copy of the folder to change.
struct OwnFolder : TestFolder {
  OwnFolder() { std::filesystem::copy(kModelFolder, path(), std::filesystem::copy_options::recursive); }
};

// The folder's generation_config.json counts, as in transformers; the command line overrides it.
TEST(GenerateCommand, HeedsTheFoldersGenerationConfig) {
  const OwnFolder own;
  const std::filesystem::path& folder = own.path();
  const auto& greedy = expected().at(2).at("greedy");
  const std::string arguments = fmt::format("--model {} --prompt x", folder.string());
  write_file_atomically(folder / "generation_config.json",
                        Json({{"eos_token_id", {7, greedy.at(4)}}, {"max_new_tokens", 9}}).dump());
  EXPECT_EQ(generated(arguments).at("ids"), Json(std::vector<Json>(greedy.begin(), greedy.begin() + 5)));
  write_file_atomically(folder / "generation_config.json", R"({"max_new_tokens": 3, "do_sample": false})");
  EXPECT_EQ(generated(arguments).at("ids").size(), 4u);
  EXPECT_EQ(generated(arguments + " --max_new_tokens 5").at("ids").size(), 6u);
  write_file_atomically(folder / "generation_config.json", R"({"temperature": "warm", "do_sample": true})");
  EXPECT_TRUE(contains(generate(arguments).output, "temperature"));
  write_file_atomically(folder / "generation_config.json", R"({"num_beams": 4, "repetition_penalty": 1.0})");
  const std::string warned = generate(arguments).output;
  EXPECT_TRUE(contains(warned, "\"num_beams\": 4 is not supported")) << warned;
  EXPECT_FALSE(contains(warned, "repetition_penalty")) << warned;
  write_file_atomically(folder / "generation_config.json", R"({"max_length": 30})");
  EXPECT_TRUE(contains(generate(arguments).output, "\"max_length\": 30 is not supported"));
  EXPECT_FALSE(contains(generate(arguments + " --max_new_tokens 2").output, "max_length"));
  write_file_atomically(folder / "generation_config.json", R"({"do_sample": false, "temperature": 0, "top_k": -1})");
  EXPECT_EQ(generate(arguments).status, 0) << "without effect";
  EXPECT_TRUE(contains(generate(arguments + " --do_sample").output, "temperature"));
  write_file_atomically(folder / "generation_config.json", "[1]");
  EXPECT_TRUE(contains(generate(arguments).output, "generation_config.json: expected an object"));
  // null is how transformers says: from all tokens.
  write_file_atomically(folder / "generation_config.json", R"({"do_sample": true, "top_k": null})");
  EXPECT_EQ(generated(arguments), generated(arguments + " --top_k 0"));
  EXPECT_NE(generated(arguments), generated(arguments + " --top_k 50"));
}

TEST(GenerateCommand, SaysHowLargeAModelIsThatDoesNotFit) {
  const OwnFolder own;
  Json config = read_json_file(own.path() / "config.json");
  config["vocab_size"] = std::int64_t{1} << 30;
  config["hidden_size"] = std::int64_t{1} << 20;
  write_file_atomically(own.path() / "config.json", config.dump());
  const Ended ended = generate(fmt::format("--model {} --prompt_ids [1]", own.path().string()));
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.output, "config.json: a model of 2264993971")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "does not fit")) << ended.output;
}

TEST(GenerateCommand, RefusesWithStatusTwoAndSaysWhatToDo) {
  const auto refused = [](const std::string& arguments, const std::string& part) {
    const Ended ended = generate(arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_TRUE(contains(ended.output, part)) << ended.output;
  };
  const std::string model = "--model " + kModelFolder + " ";
  refused("--prompt x", "--model FOLDER is missing");
  refused(model, "give either --prompt TEXT or --prompt_ids");
  refused(model + "--prompt x --prompt_ids [1]", "give either --prompt TEXT or --prompt_ids");
  refused(model + "--prompt ''", "the tokenizer finds no tokens in it");
  refused(model + "--prompt_ids [1,400]", "token 400, which is beyond the model's vocabulary of 400");
  refused(model + "--prompt_ids [1.5]", "expected a whole number");
  refused(model + "--prompt_ids '{}'", "expected a JSON array of token ids");
  refused(model + "--prompt_ids ''", "--prompt_ids:1:1");
  refused(model + "--prompt_ids '[1'", "--prompt_ids:1:");
  refused(model + "--prompt x --top_k 3", "only with --do_sample");
  refused(model + "--prompt x --logits", "only with --json");
  refused(model + "--prompt x --max_new_tokens 0", "max_new_tokens");
  refused(model + "--prompt x --dtype int8", "dtype");
  refused("--model " + kModelData + "/nowhere --prompt_ids [1]", "nowhere");
  refused("--model " + kModelData + "/model_folder/bloom_base --prompt x", "has no tokenizer: give --tokenizer PATH");
}

}  // namespace
}  // namespace tessera
