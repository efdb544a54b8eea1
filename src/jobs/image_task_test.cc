#include "jobs/image_task.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr const char* kLine =
    "Epoch [3/3] LR: 0.001000 | Loss (train, val): 5.149, 5.664 | Accuracy (train, val): 2.16%, 0.98% | "
    "Throughput: 704.9 img/s";

TEST(EpochLine, IsWordForWord) {
  EXPECT_EQ(format_epoch_line({3, 3, 0.001, 5.1491, 5.6639, 2.1600001, 0.98, 704.93}), kLine);
}

TEST(EpochLine, MetricsUnderTheNamesOfReports) {
  const LogRecord record = epoch_metrics({3, 3, 0.001, 5.149, 5.664, 2.16, 0.98, 704.9});
  EXPECT_EQ(record.number("Loss/train"), 5.149);
  EXPECT_EQ(record.number("Accuracy/val"), 0.98);
  EXPECT_EQ(record.number("Throughput/images_per_sec"), 704.9);
  EXPECT_EQ(record.number("LR"), 0.001);
}

}  // namespace
}  // namespace tessera
