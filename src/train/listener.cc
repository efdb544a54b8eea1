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

void Listeners::tell_each(const std::function<void(TrainListener&)>& event) {
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

std::string metric_name(const std::string& key) {
  if (key.find('/') != std::string::npos) return key;
  if (key.starts_with("eval_")) return "eval/" + key.substr(5);
  if (key == "train_samples_per_second" || key == "train_steps_per_second") return "train/" + key.substr(6);
  return "train/" + key;
}

}  // namespace tessera
