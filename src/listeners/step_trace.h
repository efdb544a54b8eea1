// A trace of a few steps of this rank, in Chrome's format: Perfetto and Holistic Trace Analysis open it.
//
// libtorch's profiler (Kineto) records operators and, on a GPU, kernels and copies with the device's times; parts of
// the step, units and collectives appear as annotations. Added here: a lane with every step, and one per group with its
// collectives that run on a CPU thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"
#include "tessera/world.h"
#include "train/listener.h"

namespace tessera {

std::filesystem::path trace_path(const std::filesystem::path& output_dir, int rank);

class StepTrace : public TrainListener {
 public:
  static constexpr std::int64_t kMostBytes = 50'000'000;

  // Steps `first` to `last`; fewer, once the file would have about `most_bytes`. The world must outlive it.
  StepTrace(std::filesystem::path file, std::int64_t first, std::int64_t last, World& world,
            std::int64_t most_bytes = kMostBytes);
  ~StepTrace() override;

  std::string name() const override { return "trace"; }
  void on_train_begin(const RunMoment& at) override { start_before(at.step + 1); }
  void on_step_end(const RunMoment& at) override;
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;

 private:
  struct Span {
    std::string lane, name;
    double begin_us = 0, end_us = 0;  // since 1970
  };

  void start_before(std::int64_t step);
  void finish_kernels() const;
  void stop();
  void add(const FlightEntry& entry);
  std::string with_spans(const std::string& trace);

  std::filesystem::path file_;
  std::int64_t first_, last_;
  std::int64_t most_bytes_, most_operators_;
  std::uint64_t counter_ = 0;                        // the callback that counts operators
  bool is_full_ = false;                             // the file would become too large
  std::int64_t first_traced_ = 0, last_traced_ = 0;  // fewer, if the run was resumed within them or ended early
  World& world_;
  bool is_running_ = false;
  double step_begin_us_ = 0;
  std::mutex mutex_;  // collectives end on other threads
  std::vector<Span> spans_;
};

}  // namespace tessera
