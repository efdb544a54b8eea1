// The few lines that end every run: time, speed, loss, memory against plan, where the time went.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "listeners/console.h"
#include "listeners/run_recorder.h"
#include "record/run_record.h"
#include "train/listener.h"

namespace tessera {

class EndSummary : public TrainListener {
 public:
  // The console must outlive it.
  EndSummary(Console& console, RunFacts facts) : console_(console), facts_(std::move(facts)) {}

  std::string name() const override { return "summary"; }
  void on_log(const RunMoment&, const LogRecord& record) override { remember(record); }
  void on_summary(const RunMoment&, const LogRecord& record) override { remember(record); }
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;

  void set_ranks(const std::vector<RankRecord>& ranks) { ranks_ = ranks; }

 private:
  void remember(const LogRecord& record);
  std::string time_text() const;
  std::string loss_text() const;
  std::string memory_text() const;

  Console& console_;
  RunFacts facts_;
  LogRecord last_;  // the last value of everything that was logged
  std::vector<RankRecord> ranks_;
};

// "1.10 s = data wait 0.1 %, forward 30.2 %, ...", the mean over all ranks; parts of nothing are left out. Empty where
// no step was timed.
std::string step_text(const std::vector<RankRecord>& ranks);

// "rank 3 is 12 % slower than the median (data wait)": ranks wait for each other, so the slow one is the one whose own
// work, everything but communication, takes longest. None if it takes less than a twentieth more than the median.
std::optional<std::string> slow_rank_text(const std::vector<RankRecord>& ranks);

}  // namespace tessera
