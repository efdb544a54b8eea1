// The events of a run, for everything that reports them. Listeners only listen: nothing they do changes the run.
//
// The trainer calls one Listeners on rank 0, from one thread. The first exception of a listener is logged as a warning;
// the listener is still called for later events, and the run continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/log_record.h"

namespace tessera {

struct RunMoment {
  std::int64_t step = 0;  // updates done
  std::int64_t total_steps = 0;
  double epoch = 0;
  double wall_seconds = 0;  // since 1970
};

struct SavedCheckpoint {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> kept;  // all that this run has kept, by step
};

enum class RunEnd { kFinished, kStoppedEarly, kInterrupted, kFailed };
std::string run_end_name(RunEnd end);  // finished, stopped_early, interrupted, failed

// Events come in this order: begin; for each epoch its steps, logs, evaluations and saves; summary; end.
class TrainListener {
 public:
  virtual ~TrainListener() = default;
  virtual std::string name() const = 0;  // for the warning: "TensorBoard"

  virtual void on_train_begin(const RunMoment&) {}
  virtual void on_step_end(const RunMoment&) {}
  // A log line of any kind: losses, an evaluation, the trainer's summary.
  virtual void on_log(const RunMoment&, const LogRecord&) {}
  // Metrics under the names that reports show, not printed: Loss/train, train/samples_per_second.
  virtual void on_metrics(const RunMoment&, const LogRecord&) {}
  // Those of a whole epoch, 1 for the first, which may be compared between runs of different steps per epoch.
  virtual void on_epoch_metrics(const RunMoment& at, std::int64_t /*epoch*/, const LogRecord& record) {
    on_metrics(at, record);
  }
  // Measurements of the machine: gpu.0.memoryAllocatedBytes, gpu.0.gpu.
  virtual void on_system_metrics(const RunMoment&, const LogRecord&) {}
  // A batch of an evaluation has finished.
  virtual void on_evaluation_step(const RunMoment&, std::int64_t /*done*/, std::int64_t /*total*/) {}
  virtual void on_evaluation_end(const RunMoment&) {}
  virtual void on_save(const RunMoment&, const SavedCheckpoint&) {}
  // Numbers of the whole run, under their own names: avg_mem_alloc_MB.
  virtual void on_summary(const RunMoment&, const LogRecord&) {}
  virtual void on_train_end(const RunMoment&, RunEnd, const std::string& /*reason*/) {}
};

class Listeners {
 public:
  void add(std::unique_ptr<TrainListener> listener) { entries_.push_back({std::move(listener), false}); }

  void on_train_begin(const RunMoment& at) { tell(&TrainListener::on_train_begin, at); }
  void on_step_end(const RunMoment& at) { tell(&TrainListener::on_step_end, at); }
  void on_log(const RunMoment& at, const LogRecord& record) { tell(&TrainListener::on_log, at, record); }
  void on_metrics(const RunMoment& at, const LogRecord& record) { tell(&TrainListener::on_metrics, at, record); }
  void on_epoch_metrics(const RunMoment& at, std::int64_t epoch, const LogRecord& record) {
    tell(&TrainListener::on_epoch_metrics, at, epoch, record);
  }
  void on_system_metrics(const RunMoment& at, const LogRecord& record) {
    tell(&TrainListener::on_system_metrics, at, record);
  }
  void on_evaluation_step(const RunMoment& at, std::int64_t done, std::int64_t total) {
    tell(&TrainListener::on_evaluation_step, at, done, total);
  }
  void on_evaluation_end(const RunMoment& at) { tell(&TrainListener::on_evaluation_end, at); }
  void on_save(const RunMoment& at, const SavedCheckpoint& saved) { tell(&TrainListener::on_save, at, saved); }
  void on_summary(const RunMoment& at, const LogRecord& record) { tell(&TrainListener::on_summary, at, record); }
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) {
    tell(&TrainListener::on_train_end, at, end, reason);
  }

 private:
  struct Entry {
    std::unique_ptr<TrainListener> listener;
    bool has_failed = false;
  };
  template <typename Event, typename... Arguments>
  void tell(Event event, const Arguments&... arguments) {
    tell_each([&](TrainListener& each) { (each.*event)(arguments...); });
  }
  void tell_each(const std::function<void(TrainListener&)>& event);

  std::vector<Entry> entries_;
};

// The name under which a value of a log line is reported: train/loss, eval/loss, train/samples_per_second. A key with a
// '/' keeps its name. The run's train_loss and train_runtime become train/train_loss and so on, as in transformers.
std::string metric_name(const std::string& key);

}  // namespace tessera
