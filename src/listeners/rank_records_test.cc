#include "listeners/rank_records.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

class Collector : public TrainListener {
 public:
  explicit Collector(std::vector<LogRecord>& heard) : heard_(heard) {}
  std::string name() const override { return "collector"; }
  void on_system_metrics(const RunMoment&, const LogRecord& record) override { heard_.push_back(record); }

 private:
  std::vector<LogRecord>& heard_;
};

TEST(UtilisationListener, ReportsAReadingAtEachLog) {
  constexpr double kMb = 1 << 20;
  const UsageReader reader = [] {
    Usage usage;
    usage.used_bytes = 30 * kMb;
    usage.busy_percent = 25;
    return usage;
  };
  std::vector<LogRecord> heard;
  Listeners listeners;
  const auto meter = std::make_shared<UtilisationMeter>(reader, true);
  listeners.add(std::make_unique<UtilisationListener>(meter, &listeners, "gpu.1"));
  listeners.add(std::make_unique<Collector>(heard));
  listeners.on_train_begin({0, 2, 0, 0});
  listeners.on_step_end({1, 2, 0.5, 1});
  listeners.on_log({1, 2, 0.5, 1}, {{"loss", 1.0}});
  listeners.on_log({1, 2, 0.5, 1}, {{"eval_loss", 1.0}});  // of the same step: nothing new
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_DOUBLE_EQ(*heard[0].number("gpu.1.memoryAllocatedBytes"), 30 * kMb);
  EXPECT_DOUBLE_EQ(*heard[0].number("gpu.1.gpu"), 25);
}

}  // namespace
}  // namespace tessera
