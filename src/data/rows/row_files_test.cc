#include "data/rows/row_files.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "data/rows/row_splits.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class RowFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "{}") const {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, text);
  }
  // Relative to the test's folder, as are the results.
  Names find(const std::string& name, const std::string& split = "") const {
    return relative(find_row_files({(folder_ / name).string()}, environment_, split));
  }
  Names find_hub_name(const std::string& name, const std::string& split = "") const {
    return relative(find_row_files({name}, environment_, split));
  }
  Names relative(const std::vector<fs::path>& files) const {
    Names names;
    for (const fs::path& file : files) names.push_back(file.lexically_relative(folder_.path()).string());
    return names;
  }
  std::string mistake(const std::string& name, const std::string& split = "") const {
    return message_of([&] { find(name, split); });
  }

  const TestFolder folder_;
  const Environment environment_{{{"HF_HOME", folder_.path().string()}}};
};

TEST_F(RowFiles, AFileIsTakenAsItIsAndAMissingOneIsCorrected) {
  write("train.jsonl");
  EXPECT_EQ(find("train.jsonl"), Names{"train.jsonl"});
  EXPECT_TRUE(contains(mistake("trian.jsonl"), "trian.jsonl, did you mean 'train.jsonl'?"));
  EXPECT_TRUE(contains(message_of([&] { find_row_files({""}, environment_); }), "expected the name of a file"));
  const std::string file = (folder_ / "train.jsonl").string();
  EXPECT_TRUE(contains(message_of([&] { find_row_files({file, file}, environment_); }), "is named twice"));
}

TEST_F(RowFiles, AFolderIsAllItsFilesByName) {
  write("d/b.jsonl");
  write("d/a/z.json.gz");
  write("d/README.md");
  write("d/dataset_infos.json");
  write("d/.hidden/x.jsonl");
  write("d/__MACOSX/x.jsonl");
  EXPECT_EQ(find("d"), (Names{"d/a/z.json.gz", "d/b.jsonl"}));
  EXPECT_EQ(find("d", "validation"), (Names{"d/a/z.json.gz", "d/b.jsonl"}));  // no file names a split
  fs::create_directory(folder_ / "empty");
  EXPECT_TRUE(contains(mistake("empty"), "the folder has no file that ends in one of .json"));
  write("d/c.csv");
  EXPECT_TRUE(contains(mistake("d"), "has files of several formats, z.json.gz and c.csv among them"));
}

TEST_F(RowFiles, SplitsAreFoundInNames) {
  write("d/data/train-00000-of-00002.parquet");
  write("d/data/train-00001-of-00002.parquet");
  write("d/data/test-00000-of-00001.parquet");
  const Names training{"d/data/train-00000-of-00002.parquet", "d/data/train-00001-of-00002.parquet"};
  EXPECT_EQ(find("d"), training);
  EXPECT_EQ(find("d", "train"), training);
  EXPECT_EQ(find("d", "test"), Names{"d/data/test-00000-of-00001.parquet"});
  EXPECT_TRUE(contains(mistake("d", "validation"), "has no split validation; there is test, train"));
}

TEST_F(RowFiles, FilesWithoutASplitAreForTraining) {
  write("d/alpaca.json");
  write("d/alpaca_eval.json");
  EXPECT_EQ(find("d"), Names{"d/alpaca.json"});
  EXPECT_EQ(find("d", "test"), Names{"d/alpaca_eval.json"});
  write("one/test.json");
  EXPECT_EQ(find("one"), Names{"one/test.json"});
  EXPECT_TRUE(contains(mistake("one", "train"), "has no split train; there is test"));
}

TEST_F(RowFiles, SplitsOfNames) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"train.jsonl", "train"},
      {"my-dev_set.csv", "validation"},
      {"trainer.json", ""},
      {"validation/a.json", "validation"},
      {"test/train.json", "test"},
      {"data/train_sft-00000-of-00003.parquet", "train_sft"},
      {"data-00000-of-00001.arrow", ""},
      {"x/train1.json", "train"}};
  for (const auto& [name, split] : names) EXPECT_EQ(split_in_name(name), split) << name;
  EXPECT_EQ(split_in_cached_name("a/alpaca-train.arrow"), "train");
  EXPECT_EQ(split_in_cached_name("ultra-chat-test_sft-00000-of-00002.arrow"), "test_sft");
}

TEST_F(RowFiles, PatternsMatchAsInTheShell) {
  for (const char* name : {"p/b-2.jsonl", "p/b-1.jsonl", "p/b-3.txt.bak", "p/c.csv"}) write(name);
  EXPECT_EQ(find("p/b*"), (Names{"p/b-1.jsonl", "p/b-2.jsonl"}));
  EXPECT_EQ(find("p/b-[2-9].jsonl"), Names{"p/b-2.jsonl"});
  EXPECT_TRUE(contains(mistake("p/x*"), "no file matches"));
  EXPECT_TRUE(contains(mistake("p/**/x"), "** is not known in patterns"));
  write("p/odd[1].jsonl");
  EXPECT_EQ(find("p/odd[1].jsonl"), Names{"p/odd[1].jsonl"});  // a file of that name comes first
}

TEST_F(RowFiles, AFolderThatSaveToDiskMadeListsItsFiles) {
  write("s/state.json",
        R"({"_data_files": [{"filename": "data-00000-of-00002.arrow"}, {"filename": "data-00001-of-00002.arrow"}]})");
  write("s/dataset_info.json");
  write("s/cache-123.arrow");
  EXPECT_EQ(find("s"), (Names{"s/data-00000-of-00002.arrow", "s/data-00001-of-00002.arrow"}));
  write("d/dataset_dict.json", R"({"splits": ["train", "eval"]})");
  write("d/eval/state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  EXPECT_EQ(find("d", "eval"), Names{"d/eval/data-00000-of-00001.arrow"});
  EXPECT_TRUE(contains(mistake("d", "test"), "has no split test; there is eval, train"));
  EXPECT_TRUE(contains(mistake("d"), "train/state.json: No such file"));
  write("s/state.json", R"({"_data_files": [{"filename": "../x.arrow"}]})");
  EXPECT_TRUE(contains(mistake("s"), "state.json:1:18: _data_files[0]: expected the name of a file"));
  write("s/state.json", R"({"_data_files": []})");
  EXPECT_TRUE(contains(mistake("s"), "state.json: its _data_files name no file"));
  write("d/dataset_dict.json", R"({"splits": ["../x"]})");
  EXPECT_TRUE(contains(mistake("d"), "dataset_dict.json: expected plain names"));
}

TEST_F(RowFiles, AHubNameIsFoundAsItWasDownloaded) {
  write("hub/datasets--tatsu-lab--alpaca/refs/main", "abc");
  write("hub/datasets--tatsu-lab--alpaca/snapshots/abc/README.md");
  write("hub/datasets--tatsu-lab--alpaca/snapshots/abc/data/train-00000-of-00001-a09b.parquet");
  EXPECT_EQ(find_hub_name("tatsu-lab/alpaca"),
            Names{"hub/datasets--tatsu-lab--alpaca/snapshots/abc/data/train-00000-of-00001-a09b.parquet"});
  write("hub/datasets--o--several/refs/main", "abc");
  write("hub/datasets--o--several/snapshots/abc/en/train.json");
  write("hub/datasets--o--several/snapshots/abc/fr/train.json");
  EXPECT_TRUE(contains(message_of([&] { find_hub_name("o/several"); }), "has several configurations"));
}

TEST_F(RowFiles, AHubNameIsFoundAsDatasetsStoredIt) {
  const std::string alpaca = "datasets/tatsu-lab___alpaca/default/0.0.0/";
  write(alpaca + "abc/alpaca-train.arrow");
  write(alpaca + "abc/alpaca-test.arrow");
  write(alpaca + "abc/cache-0123.arrow");
  write(alpaca + "abc/dataset_info.json");
  EXPECT_EQ(find_hub_name("tatsu-lab/alpaca"), Names{alpaca + "abc/alpaca-train.arrow"});
  EXPECT_EQ(find_hub_name("tatsu-lab/alpaca", "test"), Names{alpaca + "abc/alpaca-test.arrow"});
  write(alpaca + "def/alpaca-train.arrow");
  EXPECT_TRUE(
      contains(message_of([&] { find_hub_name("tatsu-lab/alpaca"); }), "has several configurations or versions"));
}

TEST_F(RowFiles, AHubNameThatIsNowhereSaysWhereItWasLookedFor) {
  const std::string message = message_of([&] { find_hub_name("no/such"); });
  EXPECT_TRUE(contains(message, "there is no file or folder no/such, nor is the data set no/such in"));
  EXPECT_TRUE(contains(message, (folder_ / "hub/datasets--no--such").string()));
  EXPECT_TRUE(contains(message, (folder_ / "datasets/no___such").string()));
  EXPECT_TRUE(contains(message, "huggingface-cli download --repo-type dataset no/such"));
}

}  // namespace
}  // namespace tessera
