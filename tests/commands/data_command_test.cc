#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kSquad = std::string(TESSERA_TEST_DATA_FOLDER) + "/squad/";

TEST(DataCommand, ShowsWhatASquadFileHolds) {
  const Ended ended = run_tessera(fmt::format("data inspect {}sample-v1.1.json", kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "form                   SQuAD JSON, version 1.1\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows                   37\n")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "tokens"));  // no tokenizer, no tokens
}

TEST(DataCommand, CountsTokensAndKeepsThem) {
  const TestFolder folder;
  const std::string command = fmt::format(
      "data inspect {0}sample-v1.1.json --tokenizer {0}tokenizer --batch_tokens 2048 --json --cache_folder {1}", kSquad,
      folder.path().string());
  const Ended first = run_tessera(command + " 2>/dev/null"), second = run_tessera(command + " 2>/dev/null");
  ASSERT_EQ(first.status, 0) << first.output;
  const Json a = parse_json(first.output, "first")["tokens"], b = parse_json(second.output, "second")["tokens"];
  EXPECT_EQ(a["rows"], 37);
  EXPECT_EQ(a["longest"], 512);
  EXPECT_EQ(a["truncated"], 6);
  EXPECT_EQ(a["cache"]["found"], false);
  EXPECT_EQ(b["cache"]["found"], true);
  EXPECT_EQ(a["tokens"], b["tokens"]);
  EXPECT_GE(a["batches_in_order"], a["batches_tight"]);
}

TEST(DataCommand, TheCacheLiesWhereTheEnvironmentSays) {
  const TestFolder folder;
  const Ended ended = run_shell(fmt::format("XDG_CACHE_HOME={} {} data inspect {}made.jsonl --tokenizer {}tokenizer",
                                            folder.path().string(), binary(), kSquad, kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "kept in " + (folder / "tessera/squad-").string())) << ended.output;
  const Ended without =
      run_shell(fmt::format("XDG_CACHE_HOME={} {} data inspect {}made.jsonl --tokenizer {}tokenizer --no_cache",
                            folder.path().string(), binary(), kSquad, kSquad));
  EXPECT_TRUE(contains(without.output, "not kept")) << without.output;
}

TEST(DataCommand, TellsTheSubsetAndWarnsOfModesThatOnlyReproduce) {
  const Ended ended =
      run_tessera(fmt::format("data inspect {0}sample.jsonl --tokenizer {0}tokenizer --label_mode padded --max_samples "
                              "10 --subset_seed 42 --no_cache",
                              kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows used              10 of 37\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "tokens                 5120\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "exists to reproduce the ZeRO workshop")) << ended.output;
}

TEST(DataCommand, ShowsAFolderOfPictures) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "train/cat");
  for (const char* name : {"grey.jpg", "large.jpg"}) {
    std::filesystem::copy_file(std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "images" / name,
                               folder / "train/cat" / name);
  }
  const Ended ended = run_tessera("data inspect " + folder.path().string());
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "cat")) << ended.output;
  const Ended refused = run_tessera(fmt::format("data inspect {} --max_length 3", folder.path().string()));
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.output, "--max_length is for text")) << refused.output;
}

TEST(DataCommand, ReadsAPipe) {
  const Ended ended =
      run_shell(fmt::format("cat {0}sample.jsonl | {1} data inspect /dev/stdin --tokenizer {0}tokenizer "
                            "--no_cache",
                            kSquad, binary()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows used              37 of 37\n")) << ended.output;
}

TEST(DataCommand, WarnsWhereNothingCountsForTheLoss) {
  const Ended ended = run_tessera(fmt::format(
      "data inspect {0}made.jsonl --tokenizer {0}tokenizer --no_cache --label_mode full --max_length 1", kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "no token counts for the loss in label mode 'full'")) << ended.output;
}

TEST(DataCommand, RefusesWithTheReason) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "saved");
  EXPECT_EQ(run_shell(fmt::format("touch {0}/saved/data-00000-of-00001.arrow; printf '{{\"data\": 7}}' > {0}/bad.json",
                                  folder.path().string()))
                .status,
            0);
  const auto refusal = [&](const std::string& arguments) {
    const Ended ended = run_tessera("data " + arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    return ended.output;
  };
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "saved").string()), "to_json"));
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "bad.json").string()), "bad.json:1:10: data: expected an array"));
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "none").string()), "No such file"));
  EXPECT_TRUE(contains(refusal("inspect " + kSquad), "For text name the file: " + kSquad));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --max_length 3", kSquad)), "give --tokenizer too"));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --tokenizer a/name", kSquad)), "a/name"));
  EXPECT_TRUE(contains(refusal("inspect"), "tessera data inspect PATH"));
  EXPECT_TRUE(contains(refusal("look x"), "tessera data inspect PATH"));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --label_mode all", kSquad)), "answer"));
}

}  // namespace
}  // namespace tessera
