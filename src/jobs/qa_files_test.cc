#include "jobs/qa_files.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "support/test_folder.h"
#include "support/weight_files.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, "");
}

std::string refusal_in(const fs::path& here, const std::string& data_dir, const Environment& environment) {
  try {
    find_squad(data_dir, environment, here);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "found";
}

TEST(SquadSearch, TheFirstUsualPlaceIsTaken) {
  const TestFolder folder;
  const fs::path here = folder.path();
  const Environment environment({{"HOME", here.string()}});
  touch(here / "data/train.jsonl");  // whose?
  touch(here / "squad/train.json");
  EXPECT_EQ(find_squad("", environment, here).training, here / "squad/train.json");
  touch(here / "squad/train.jsonl");
  touch(here / "squad/validation.jsonl");
  EXPECT_EQ(find_squad("", environment, here).training, here / "squad/train.jsonl");
  EXPECT_EQ(find_squad("", environment, here).validation, here / "squad/validation.jsonl");
  touch(here / "data/train-v1.1.json");
  EXPECT_EQ(find_squad("", environment, here).training, here / "data/train-v1.1.json");
  EXPECT_EQ(find_squad("", environment, here).validation, "");
  touch(here / "mine/squad/train-v1.1.json");
  EXPECT_EQ(find_squad((here / "mine").string(), environment, here).training, here / "mine/squad/train-v1.1.json");
}

TEST(SquadSearch, ARefusalNamesWhatWasTriedAndHowToConvertArrowFiles) {
  const TestFolder folder;
  const std::string root = folder.path().string();
  const Environment environment({{"XDG_CACHE_HOME", root + "/c"}});
  const std::string tried = "--train_file FILE is missing, and there is no SQuAD in " + root + "/mine, " + root +
                            "/mine/squad, " + root + "/data, " + root + "/data/squad, " + root + "/squad, " + root +
                            "/c/huggingface/datasets/squad (train-v1.1.json; in folders named squad also train.jsonl "
                            "or train.json): give --train_file, or --data_dir";
  EXPECT_EQ(refusal_in(folder.path(), root + "/mine", environment), tried);
  touch(folder.path() / "c/huggingface/datasets/rajpurkar___squad/plain_text/0.0.0/abc/squad-train.arrow");
  EXPECT_EQ(refusal_in(folder.path(), root + "/mine", environment),
            tried + "; " + root +
                "/c/huggingface/datasets/rajpurkar___squad has it as Arrow files, which Tessera does "
                "not read: run python3 -c \"import os, datasets; os.makedirs('" +
                root +
                "/mine/squad', exist_ok=True); datasets.load_dataset('rajpurkar/squad', split='train').to_json('" +
                root + "/mine/squad/train.jsonl')\", and " + root +
                "/mine/squad/train.jsonl will be found (the same with 'validation' for an evaluation)");
  const Environment named({{"HF_DATASETS_CACHE", root + "/d"}});
  touch(folder.path() / "d/squad/plain_text/1.0.0/abc/squad-train.arrow");
  EXPECT_NE(refusal_in(folder.path(), "", named).find("load_dataset('squad', split='train')"), std::string::npos);
}

}  // namespace
}  // namespace tessera
