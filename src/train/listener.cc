#include "train/listener.h"

#include <exception>
#include <utility>

#include "core/log.h"

namespace tessera {

std::string run_end_name(RunEnd end) {
  // In the order of the enumeration.
  static constexpr const char* kNames[] = {"finished", "stopped_early", "interrupted", "failed"};
  return kNames[static_cast<std::size_t>(end)];
}

void Listeners::add(std::unique_ptr<TrainListener> listener) {
  entries_.push_back({std::move(listener), false});
}

void Listeners::tell(const std::function<void(TrainListener&)>& event) {
  for (Entry& entry : entries_) {
    const auto warn_once = [&](const char* what) {
      if (std::exchange(entry.has_failed, true)) return;
      log_warn("{}: {} (the run continues; its further problems are not shown)", entry.listener->name(), what);
    };
    try {
      event(*entry.listener);
    } catch (const std::exception& error) {
      warn_once(error.what());
    } catch (...) {
      warn_once("failed for an unknown reason");
    }
  }
}

void Listeners::on_train_begin(const RunMoment& at) {
  tell([&](TrainListener& each) { each.on_train_begin(at); });
}
void Listeners::on_step_end(const RunMoment& at) {
  tell([&](TrainListener& each) { each.on_step_end(at); });
}
void Listeners::on_log(const RunMoment& at, const LogRecord& record) {
  tell([&](TrainListener& each) { each.on_log(at, record); });
}
void Listeners::on_metrics(const RunMoment& at, const LogRecord& record) {
  tell([&](TrainListener& each) { each.on_metrics(at, record); });
}
void Listeners::on_epoch_metrics(const RunMoment& at, std::int64_t epoch, const LogRecord& record) {
  tell([&](TrainListener& each) { each.on_epoch_metrics(at, epoch, record); });
}
void Listeners::on_system_metrics(const RunMoment& at, const LogRecord& record) {
  tell([&](TrainListener& each) { each.on_system_metrics(at, record); });
}
void Listeners::on_evaluation_step(const RunMoment& at, std::int64_t done, std::int64_t total) {
  tell([&](TrainListener& each) { each.on_evaluation_step(at, done, total); });
}
void Listeners::on_evaluation_end(const RunMoment& at) {
  tell([&](TrainListener& each) { each.on_evaluation_end(at); });
}
void Listeners::on_save(const RunMoment& at, const SavedCheckpoint& saved) {
  tell([&](TrainListener& each) { each.on_save(at, saved); });
}
void Listeners::on_summary(const RunMoment& at, const LogRecord& record) {
  tell([&](TrainListener& each) { each.on_summary(at, record); });
}
void Listeners::on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) {
  tell([&](TrainListener& each) { each.on_train_end(at, end, reason); });
}

std::string metric_name(const std::string& key) {
  if (key.find('/') != std::string::npos) return key;
  if (key.starts_with("eval_")) return "eval/" + key.substr(5);
  if (key == "train_samples_per_second" || key == "train_steps_per_second") return "train/" + key.substr(6);
  return "train/" + key;
}

}  // namespace tessera
