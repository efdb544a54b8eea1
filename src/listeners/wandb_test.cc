#include "listeners/wandb.h"

#include "core/file.h"
#include "support/sha256.h"
#include "support/small_run.h"

namespace tessera {
namespace {

using Wandb = WithFolder;

TEST_F(Wandb, AFileIsByteForByteWhatItsOwnDatastoreMakes) {
  WandbOptions options;
  options.folder = folder_;
  options.run_id = "abcd1234";
  options.project = "squad";
  options.name = "small run";
  auto owned = std::make_unique<WandbListener>(options, train_reference("events.json", "config"), "node1");
  const WandbListener& listener = *owned;
  Listeners listeners;
  listeners.add(std::move(owned));
  tell_small_run(listeners);
  const std::string name = listener.run_folder().filename().string();
  EXPECT_TRUE(name.starts_with("offline-run-20231114_") || name.starts_with("offline-run-20231115_")) << name;
  EXPECT_TRUE(name.ends_with("-abcd1234")) << name;
  const std::string content = read_file(listener.run_folder() / "run-abcd1234.wandb");
  EXPECT_EQ(content, bytes_of(train_reference("events.json", "wandb")));
  EXPECT_EQ(content.find("WANDB_API_KEY"), std::string::npos);
}

TEST_F(Wandb, RecordsMeetTheEndsOfBlocksAsInItsOwnDatastore) {
  const Json reference = train_reference("events.json", "blocks");
  WandbFile file(folder_ / "run-x.wandb");
  int number = 0;
  for (const Json& size : reference.at("sizes")) {
    std::string record(size.get<std::size_t>(), '\0');
    for (std::size_t i = 0; i < record.size(); ++i) {
      record[i] = static_cast<char>((static_cast<std::size_t>(number) * 31 + i) % 251);
    }
    file.append(record);
    ++number;
  }
  const std::string content = read_file(file.path());
  EXPECT_EQ(content.size(), reference.at("num_bytes").get<std::size_t>());
  EXPECT_EQ(sha256_hex(content), reference.at("sha256").get<std::string>());
}

TEST_F(Wandb, AnOldRunIsNotWrittenOver) {
  WandbFile file(folder_ / "run-x.wandb");
  EXPECT_THROW(WandbFile(folder_ / "run-x.wandb"), Error);
}

TEST_F(Wandb, RunsWithoutAnIdAreDifferentRuns) {
  WandbOptions options;
  options.folder = folder_;
  WandbListener first(options, Json::object(), "h"), second(options, Json::object(), "h");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));  // nothing before the run starts
  first.on_train_begin({});
  second.on_train_begin({});
  EXPECT_NE(first.run_folder(), second.run_folder());
  EXPECT_TRUE(std::filesystem::is_directory(first.run_folder()));
  EXPECT_TRUE(std::filesystem::is_directory(second.run_folder()));
}

}  // namespace
}  // namespace tessera
