#include "listeners/end_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/quantity.h"
#include "core/text.h"
#include "parallel/step_clock.h"
#include "record/metrics.h"

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

constexpr double kSlow = 0.05;

// Time that a rank spends waiting for others is not its own.
bool is_waiting(const std::string& part) {
  return part == step_part_names()[static_cast<std::size_t>(StepPart::kCommunication)];
}

// 0: the rank has no such part.
double mean_ms_of(const RankRecord& rank, const std::string& part) {
  const auto found =
      std::find_if(rank.parts.begin(), rank.parts.end(), [&](const PartTime& each) { return each.name == part; });
  return found == rank.parts.end() ? 0 : found->mean_ms;
}

double own_ms(const RankRecord& rank) {
  double sum = 0;
  for (const PartTime& part : rank.parts) {
    if (!is_waiting(part.name)) sum += part.mean_ms;
  }
  return sum;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The part that takes longest in excess of its median.
std::string slowest_part(const std::vector<RankRecord>& ranks, const RankRecord& slow) {
  std::string name;
  double most = 0;
  for (const PartTime& part : slow.parts) {
    if (is_waiting(part.name)) continue;
    std::vector<double> of_ranks;
    for (const RankRecord& rank : ranks) of_ranks.push_back(mean_ms_of(rank, part.name));
    const double excess = part.mean_ms - median(std::move(of_ranks));
    if (excess <= most) continue;
    most = excess;
    name = part.name;
  }
  return name;
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
                                  strategy == nullptr ? ""
                                                      : fmt::format(": {} on {}", std::get<std::string>(*strategy),
                                                                    counted(std::llround(num_ranks), "rank"))));
  const auto line = [&](const char* name, const std::string& text) {
    if (!text.empty()) console_.print_line(fmt::format("  {:<10}{}", name, text));
  };
  line("time", time_text());
  line("loss", loss_text());
  line("memory", memory_text());
  line("step", step_text(ranks_));
  line("slow rank", slow_rank_text(ranks_).value_or(""));
}

std::string step_text(const std::vector<RankRecord>& ranks) {
  if (ranks.empty() || ranks.front().parts.empty()) return {};
  std::vector<PartTime> parts = ranks.front().parts;
  double whole = 0;
  for (PartTime& part : parts) {
    part.mean_ms = 0;
    for (const RankRecord& rank : ranks)
      part.mean_ms += mean_ms_of(rank, part.name) / static_cast<double>(ranks.size());
    whole += part.mean_ms;
  }
  if (whole <= 0) return {};
  std::vector<std::string> texts;
  for (const PartTime& part : parts) {
    const double percent = 100 * part.mean_ms / whole;
    if (percent >= 0.05) texts.push_back(fmt::format("{} {:.1f} %", part.name, percent));
  }
  return fmt::format("{} = {}", whole < 1000 ? fmt::format("{:.1f} ms", whole) : fmt::format("{:.2f} s", whole / 1000),
                     join(texts, ", "));
}

std::optional<std::string> slow_rank_text(const std::vector<RankRecord>& ranks) {
  if (ranks.size() < 2 || ranks.front().parts.empty()) return std::nullopt;
  std::vector<double> own;
  for (const RankRecord& rank : ranks) own.push_back(own_ms(rank));
  const auto slow = std::max_element(own.begin(), own.end());
  const double middle = median(own);
  if (middle <= 0 || *slow < (1 + kSlow) * middle) return std::nullopt;
  const RankRecord& rank = ranks[static_cast<std::size_t>(slow - own.begin())];
  return fmt::format("rank {} is {:.0f} % slower than the median ({})", rank.rank, 100 * (*slow / middle - 1),
                     slowest_part(ranks, rank));
}

}  // namespace tessera
