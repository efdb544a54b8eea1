#include "listeners/tensorboard.h"

#include <functional>

#include "core/file.h"
#include "support/small_run.h"

namespace tessera {
namespace {

using TensorBoard = WithFolder;

TEST_F(TensorBoard, AFileIsByteForByteWhatTensorBoardsWriterMakes) {
  Listeners listeners;
  listeners.add(std::make_unique<TensorBoardListener>(folder_, "node1", train_reference("events.json", "settings")));
  tell_small_run(listeners);
  const std::vector<std::filesystem::path> files(std::filesystem::directory_iterator(folder_), {});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents.1700000000.node1.")) << files[0];
  EXPECT_EQ(read_file(files[0]), bytes_of(train_reference("events.json", "tensorboard")));
}

TEST_F(TensorBoard, MetricsOfEpochsStandAtTheirEpoch) {
  const auto bytes_with = [&](const std::string& name, const std::function<void(Listeners&)>& tell) {
    Listeners listeners;
    listeners.add(std::make_unique<TensorBoardListener>(folder_ / name, "node1", ""));
    listeners.on_train_begin({0, 392, 0, 1700000000});
    tell(listeners);
    return read_file(std::filesystem::directory_iterator(folder_ / name)->path());
  };
  const LogRecord record = {{"Loss/val", 5.5}};
  const std::string epoch = bytes_with("epoch", [&](Listeners& all) {
    all.on_epoch_metrics({392, 392, 2, 1}, 2, record);
  });
  EXPECT_EQ(epoch, bytes_with("step", [&](Listeners& all) { all.on_metrics({2, 392, 2, 1}, record); }));
}

TEST_F(TensorBoard, AFolderThatCannotBeMadeIsAnErrorWithItsPath) {
  write_file_atomically(folder_ / "file", "");
  try {
    EventFile file(folder_ / "file" / "below", 1, "host");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find((folder_ / "file" / "below").string()), std::string::npos);
  }
}

TEST(TensorBoardFolder, IsTransformers) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(default_logging_dir("out", 1700000000, "node1"), "out/runs/Nov14_22-13-20_node1");
}

TEST(Checksum, EqualsTheOriginals) {
  for (const Json& row : train_reference("events.json", "checksums")) {
    const std::string text = row[0];
    EXPECT_EQ(crc32c(text), row[1].get<std::uint32_t>());
    EXPECT_EQ(masked_crc32c(text), row[2].get<std::uint32_t>());
    EXPECT_EQ(crc32(text), row[3].get<std::uint32_t>());
  }
}

TEST(MetricName, IsAsReportsShowIt) {
  for (const auto& [key, name] :
       std::vector<std::pair<std::string, std::string>>{{"loss", "train/loss"},
                                                        {"grad_norm", "train/grad_norm"},
                                                        {"learning_rate", "train/learning_rate"},
                                                        {"epoch", "train/epoch"},
                                                        {"eval_loss", "eval/loss"},
                                                        {"eval_samples_per_second", "eval/samples_per_second"},
                                                        {"train_samples_per_second", "train/samples_per_second"},
                                                        {"train_loss", "train/train_loss"},
                                                        {"Loss/val", "Loss/val"}}) {
    EXPECT_EQ(metric_name(key), name);
  }
}

}  // namespace
}  // namespace tessera
