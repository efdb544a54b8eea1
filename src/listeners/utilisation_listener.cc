#include "listeners/utilisation_listener.h"

#include "core/quantity.h"

namespace tessera {
// Under the names that W&B's own agent uses for such readings.
void UtilisationListener::on_log(const RunMoment& at, const LogRecord&) {
  const std::optional<Usage>& usage = meter_->last();
  if (reports_ == nullptr || !usage || at.step == last_step_) return;
  last_step_ = at.step;
  LogRecord readings;
  if (device_ == "cpu") {
    if (usage->allocated_bytes) readings.set("proc.memory.rssMB", *usage->allocated_bytes / kBytesPerMb);
    if (usage->busy_percent) readings.set("proc.cpu", *usage->busy_percent);
  } else {
    if (usage->used_bytes) readings.set(device_ + ".memoryAllocatedBytes", *usage->used_bytes);
    if (usage->busy_percent) readings.set(device_ + ".gpu", *usage->busy_percent);
    if (usage->allocated_bytes) readings.set(device_ + ".tensorBytes", *usage->allocated_bytes);
  }
  reports_->on_system_metrics(at, readings);
}

}  // namespace tessera
