#include "state/checkpoint_folder.h"

#include "core/file.h"
#include "support/small_run.h"

namespace tessera {
namespace {

using Steps = std::vector<std::int64_t>;

TEST(CheckpointRotation, TheOldestGoFirst) {
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30}, std::nullopt, 2), Steps({10}));
  EXPECT_EQ(checkpoints_to_delete({30, 100, 20}, std::nullopt, 1), Steps({20, 30}));
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30}, std::nullopt, 3), Steps());
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30}, std::nullopt, 0), Steps());
  EXPECT_EQ(checkpoints_to_delete({}, 10, 1), Steps());
}

TEST(CheckpointRotation, TheBestAndTheNewestStay) {
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30, 40}, 10, 2), Steps({20, 30}));
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30, 40}, 10, 1), Steps({20, 30}));
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30, 40}, 40, 1), Steps({10, 20, 30}));
  EXPECT_EQ(checkpoints_to_delete({10, 20}, 10, 1), Steps());
  EXPECT_EQ(checkpoints_to_delete({10, 20, 30}, 99, 1), Steps({10, 20}));  // the best was never saved
}

TEST(CheckpointRotation, HoweverMany) {
  for (std::int64_t best = 1; best <= 6; ++best) {
    for (std::int64_t limit = 1; limit <= 7; ++limit) {
      const Steps gone = checkpoints_to_delete({1, 2, 3, 4, 5, 6}, best, limit);
      EXPECT_EQ(std::count(gone.begin(), gone.end(), best), 0);
      EXPECT_EQ(std::count(gone.begin(), gone.end(), 6), 0);
      const std::int64_t kept = 6 - static_cast<std::int64_t>(gone.size());
      EXPECT_EQ(kept, std::min<std::int64_t>(6, limit == 1 && best != 6 ? 2 : limit));
    }
  }
}

TEST(CheckpointNames, AndBack) {
  EXPECT_EQ(checkpoint_name(93), "checkpoint-93");
  EXPECT_EQ(checkpoint_step("checkpoint-93"), 93);
  for (const char* name : {"checkpoint-", "checkpoint-x", "checkpoint-007", "checkpoint-+7", "checkpoint--7", "runs"}) {
    EXPECT_EQ(checkpoint_step(name), std::nullopt) << name;
  }
}

using CheckpointFolders = WithFolder;

TEST_F(CheckpointFolders, AreFound) {
  for (const char* name : {"checkpoint-100", "checkpoint-9", "runs", "checkpoint-last"}) {
    std::filesystem::create_directory(folder_ / name);
  }
  write_file_atomically(folder_ / "checkpoint-50", "a file, not a folder");
  EXPECT_EQ(find_checkpoints(folder_), Steps({9, 100}));
  EXPECT_EQ(find_checkpoints(folder_ / "absent"), Steps());
}

}  // namespace
}  // namespace tessera
