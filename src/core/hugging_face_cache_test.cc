#include "core/hugging_face_cache.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(HuggingFaceCache, VariablesSayWhereItIs) {
  EXPECT_EQ(hugging_face_home(Environment({{"HOME", "/h"}})), "/h/.cache/huggingface");
  EXPECT_EQ(hugging_face_home(Environment({{"HOME", "/h"}, {"XDG_CACHE_HOME", "~/x"}})), "/h/x/huggingface");
  const Environment named({{"HOME", "/h"}, {"HF_HOME", "/hf"}});
  EXPECT_EQ(hub_cache(named), "/hf/hub");
  EXPECT_EQ(datasets_cache(named), "/hf/datasets");
  EXPECT_EQ(hub_cache(Environment({{"HF_HUB_CACHE", "/a"}, {"HUGGINGFACE_HUB_CACHE", "/b"}})), "/a");
  EXPECT_EQ(datasets_cache(Environment({{"HOME", "/h"}, {"HF_DATASETS_CACHE", "~/d"}})), "/h/d");
}

TEST(HuggingFaceCache, NamesOfTheHub) {
  EXPECT_TRUE(is_hub_name("tatsu-lab/alpaca"));
  EXPECT_TRUE(is_hub_name("squad"));
  for (const char* path : {"", "/a", "./a", "../a", "a/", "a/b/c", "a b"}) EXPECT_FALSE(is_hub_name(path)) << path;
  EXPECT_EQ(hub_folder_name("datasets", "tatsu-lab/alpaca"), "datasets--tatsu-lab--alpaca");
}

TEST(HuggingFaceCache, ASnapshotIsTheRevisionOfMainWithinTheFolder) {
  const TestFolder folder;
  EXPECT_EQ(cached_snapshot(folder.path()), std::nullopt);
  fs::create_directories(folder / "snapshots/abc");
  fs::create_directories(folder / "refs");
  write_file_atomically(folder / "refs/main", "abc\n");
  EXPECT_EQ(cached_snapshot(folder.path()), folder / "snapshots/abc");
  for (const char* revision : {"", "gone", "..", "../refs", "/"}) {
    write_file_atomically(folder / "refs/main", revision);
    EXPECT_EQ(cached_snapshot(folder.path()), std::nullopt) << revision;
  }
}

}  // namespace
}  // namespace tessera
