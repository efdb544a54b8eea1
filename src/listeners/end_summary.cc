#include "listeners/end_summary.h"

#include <fmt/format.h>

#include "core/quantity.h"
#include "core/text.h"
#include "listeners/step_text.h"
#include "record/figures.h"

namespace tessera {
namespace {

std::string human_seconds(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string human_mb(double mb) {
  return human_bytes(static_cast<std::int64_t>(mb * kBytesPerMb));
}

}  // namespace

void EndSummary::remember(const LogRecord& record) {
  for (const auto& [key, value] : record.entries()) last_.set(key, value);
}

std::string EndSummary::time_text() const {
  const auto seconds = last_.number("train_runtime"), rate = last_.number("train_samples_per_second");
  return seconds && rate ? fmt::format("{}, {:.1f} samples/s", human_seconds(*seconds), *rate) : "";
}

std::string EndSummary::loss_text() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* key, const char* format) {
    if (const auto value = last_.number(key)) parts.push_back(fmt::format(fmt::runtime(format), *value));
  };
  add("train_loss", "{:.4f} in training");
  add("eval_loss", "{:.4f} in the last evaluation");
  add("eval_accuracy", "accuracy {:.4f}");
  add("exact_match", "exact match {:.4f}");
  add("f1", "F1 {:.4f}");
  return join(parts, ", ");
}

// The largest of all ranks. A GPU's is the allocator's, which the plan is about; a CPU's is of the whole process.
std::string EndSummary::memory_text() const {
  const auto planned = facts_.planned_memory.number("total");
  const std::string plan =
      planned ? fmt::format(" (planned: {})", human_bytes(static_cast<std::int64_t>(*planned))) : "";
  RunRecord run;  // by the formulas that read it back: `tessera runs` must say the same
  run.summary = last_;
  run.ranks = ranks_;
  if (const auto allocated = allocated_peak_MB(run)) {
    return fmt::format("{} allocated at the peak on a GPU{}", human_mb(*allocated), plan);
  }
  const auto resident = resident_peak_MB(run);
  return resident ? fmt::format("{} resident at the peak in a process", human_mb(*resident)) : "";
}

void EndSummary::on_train_end(const RunMoment& at, RunEnd end, const std::string&) {
  if (at.step == 0 || end == RunEnd::kFailed) return;
  const LogValue* strategy = facts_.facts.find("strategy");
  const double num_ranks = facts_.facts.number("ranks").value_or(1);
  console_.print_line(fmt::format("Run {} after {} of {} steps{}", run_end_name(end), at.step, at.total_steps,
                                  strategy == nullptr
                                      ? ""
                                      : fmt::format(": {} on {:.0f} rank{}", std::get<std::string>(*strategy),
                                                    num_ranks, num_ranks == 1 ? "" : "s")));
  const auto line = [&](const char* name, const std::string& text) {
    if (!text.empty()) console_.print_line(fmt::format("  {:<10}{}", name, text));
  };
  line("time", time_text());
  line("loss", loss_text());
  line("memory", memory_text());
  line("step", step_text(ranks_));
  line("slow rank", slow_rank_text(ranks_).value_or(""));
}

}  // namespace tessera
