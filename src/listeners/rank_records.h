// What every rank measured, gathered for run.json and for the summary at a run's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "monitor/utilisation.h"
#include "parallel/step_clock.h"
#include "record/run_record.h"
#include "tessera/world.h"
#include "train/listener.h"

namespace tessera {

// By rank. `devices`: a name per rank. Collective; every rank gets the same.
std::vector<RankRecord> gather_rank_records(World& world, const StepTimes& times, const UsageReadings& usage,
                                            const std::vector<std::string>& devices);

// Reads what a run uses at the end of each step, and reports it with each log.
class UtilisationListener : public TrainListener {
 public:
  // `reports`: gets the readings at each log, as system metrics; null: none. It must outlive this. `device`: "gpu.0" or
  // "cpu".
  UtilisationListener(std::shared_ptr<UtilisationMeter> meter, Listeners* reports, std::string device)
      : meter_(std::move(meter)), reports_(reports), device_(std::move(device)) {}

  std::string name() const override { return "utilisation"; }
  void on_train_begin(const RunMoment&) override { meter_->begin(); }
  void on_step_end(const RunMoment&) override { meter_->sample(); }
  void on_log(const RunMoment& at, const LogRecord&) override;

 private:
  std::shared_ptr<UtilisationMeter> meter_;
  Listeners* reports_;
  std::string device_;
  std::int64_t last_step_ = -1;
};

}  // namespace tessera
