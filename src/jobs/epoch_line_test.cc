#include "jobs/epoch_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

constexpr const char* kLine =
    "Epoch [3/3] LR: 0.001000 | Loss (train, val): 5.149, 5.664 | Accuracy (train, val): 2.16%, 0.98% | "
    "Throughput: 704.9 img/s";

TEST(EpochLine, IsWordForWord) {
  EXPECT_EQ(format_epoch_line({3, 3, 0.001, 5.1491, 5.6639, 2.1600001, 0.98, 704.93}), kLine);
}

TEST(EpochLine, IsReadBack) {
  const std::optional<EpochResult> read = parse_epoch_line(std::string("rank 0: ") + kLine);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->epoch, 3);
  EXPECT_EQ(read->num_epochs, 3);
  EXPECT_EQ(read->learning_rate, 0.001);
  EXPECT_EQ(read->train_loss, 5.149);
  EXPECT_EQ(read->val_loss, 5.664);
  EXPECT_EQ(read->train_accuracy, 2.16);
  EXPECT_EQ(read->val_accuracy, 0.98);
  EXPECT_EQ(read->images_per_second, 704.9);
  EXPECT_EQ(format_epoch_line(*read), kLine);
}

TEST(EpochLine, LossesThatAreNoNumbersAreReadToo) {
  const std::optional<EpochResult> read = parse_epoch_line(format_epoch_line({1, 3, 0.1, NAN, INFINITY, 0, 0, 1}));
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->train_loss));
  EXPECT_EQ(read->val_loss, INFINITY);
}

TEST(EpochLine, OtherTextIsNot) {
  const std::string line = kLine;
  for (std::size_t length = 0; length < line.size(); ++length) {
    EXPECT_FALSE(parse_epoch_line(line.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_epoch_line("Epoch [x/3] LR: 0.001000"));
}

TEST(EpochLine, MetricsUnderTheNamesOfReports) {
  const LogRecord record = epoch_metrics({3, 3, 0.001, 5.149, 5.664, 2.16, 0.98, 704.9});
  EXPECT_EQ(record.number("Loss/train"), 5.149);
  EXPECT_EQ(record.number("Accuracy/val"), 0.98);
  EXPECT_EQ(record.number("Throughput/images_per_sec"), 704.9);
  EXPECT_EQ(record.number("LR"), 0.001);
}

TEST(EpochLine, TheLastTwoLines) {
  EXPECT_EQ(format_execution_time(123.4561), "Total execution time = 123.456 sec");
  EXPECT_EQ(format_tensor_memory(12345678901), "Max memory used by tensors = 12345678901 bytes");
}

}  // namespace
}  // namespace tessera
