#include "record/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/python_text.h"
#include "core/text.h"

namespace tessera {
namespace {

std::optional<double> first_of(std::optional<double> a, std::optional<double> b) {
  return a ? a : b;
}

std::optional<double> logged_or_summed(const RunRecord& run, const std::string& name) {
  return first_of(run.last(name), run.summary.number(name));
}

std::vector<double> of_ranks(const RunRecord& run, const std::string& number) {
  std::vector<double> values;
  for (const RankRecord& rank : run.ranks) {
    if (const std::optional<double> value = rank.numbers.number(number)) values.push_back(*value);
  }
  return values;
}

Figure logged(std::string name, std::string label, std::string unit, Better better, int digits) {
  Figure figure{name, std::move(label), std::move(unit), better, digits, nullptr};
  figure.of = [name = std::move(name)](const RunRecord& run) { return run.last(name); };
  return figure;
}

Figure score(const std::string& name, const std::string& label) {
  return {name, label, "", Better::kHigher, 4, [name](const RunRecord& run) { return answer_score(run, name); }};
}

Figure largest(const std::string& number, const std::string& label) {
  return {number,         label, "MiB",
          Better::kLower, 0,     [number](const RunRecord& run) { return largest_of_ranks(run, number); }};
}

std::string text_of(const LogValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "";
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return python_repr(value);
}

bool is_on(const RunRecord& run, const char* setting) {
  const RecordedSetting* found = run.setting(setting);
  return found != nullptr && found->value == "true";
}

}  // namespace

const std::vector<Figure>& figures() {
  static const std::vector<Figure> all = {
      {"samples_per_second", "training speed", "samples/s", Better::kHigher, 3, samples_per_second},
      {"runtime", "runtime", "s", Better::kLower, 2, runtime_seconds},
      {"step_mean_ms", "step time", "ms", Better::kLower, 2,
       [](const RunRecord& run) { return mean_of_ranks(run, "step_mean_ms"); }},
      {"train_loss", "train loss", "", Better::kLower, 4, train_loss},
      logged("eval_loss", "eval loss", "", Better::kLower, 4),
      score("exact_match", "exact match"),
      score("f1", "F1"),
      logged("Accuracy/val", "accuracy (val)", "%", Better::kHigher, 2),
      logged("eval_samples_per_second", "evaluation speed", "samples/s", Better::kHigher, 3),
      {"allocated_peak_MB", "GPU memory allocated, peak", "MiB", Better::kLower, 0, allocated_peak_MB},
      largest("reserved_peak_MB", "GPU memory reserved, peak"),
      largest("used_peak_MB", "GPU memory used, peak"),
      {"used_mean_MB", "GPU memory used, mean", "MiB", Better::kLower, 0, used_mean_MB},
      {"busy_mean_percent", "busy, mean", "%", Better::kHigher, 1, busy_mean_percent},
      {"resident_peak_MB", "process memory, peak", "MiB", Better::kLower, 0, resident_peak_MB},
  };
  return all;
}

std::vector<Figure> part_figures(const std::vector<const RunRecord*>& runs) {
  std::vector<Figure> parts;
  std::set<std::string> seen;
  for (const RunRecord* run : runs) {
    for (const RankRecord& rank : run->ranks) {
      for (const PartTime& part : rank.parts) {
        if (!seen.insert(part.name).second) continue;
        std::string name = part.name + "_ms";
        std::replace(name.begin(), name.end(), ' ', '_');
        parts.push_back({name, part.name, "ms", Better::kLower, 2,
                         [part = part.name](const RunRecord& each) { return part_mean_ms(each, part); }});
      }
    }
  }
  return parts;
}

std::optional<double> samples_per_second(const RunRecord& run) {
  return first_of(logged_or_summed(run, "train_samples_per_second"), run.last("train/samples_per_second"));
}

std::optional<double> runtime_seconds(const RunRecord& run) {
  return logged_or_summed(run, "train_runtime");
}

std::optional<double> train_loss(const RunRecord& run) {
  return first_of(logged_or_summed(run, "train_loss"), run.last("loss"));
}

std::optional<double> answer_score(const RunRecord& run, const std::string& name) {
  return first_of(run.summary.number(name), run.last("eval_" + name));
}

std::optional<double> largest_of_ranks(const RunRecord& run, const std::string& number) {
  const std::vector<double> values = of_ranks(run, number);
  if (values.empty()) return std::nullopt;
  return *std::max_element(values.begin(), values.end());
}

std::optional<double> mean_of_ranks(const RunRecord& run, const std::string& number) {
  const std::vector<double> values = of_ranks(run, number);
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> allocated_peak_MB(const RunRecord& run) {
  return first_of(largest_of_ranks(run, "allocated_peak_MB"), run.summary.number("max_mem_alloc_MB"));
}

std::optional<double> resident_peak_MB(const RunRecord& run) {
  return first_of(largest_of_ranks(run, "resident_peak_MB"), run.summary.number("max_cpu_mem_MB"));
}

std::optional<double> used_mean_MB(const RunRecord& run) {
  return first_of(mean_of_ranks(run, "used_mean_MB"), run.summary.number("avg_mem_total_MB"));
}

std::optional<double> busy_mean_percent(const RunRecord& run) {
  return first_of(mean_of_ranks(run, "busy_mean_percent"),
                  first_of(run.summary.number("avg_gpu_util_%"), run.summary.number("avg_cpu_util_%")));
}

std::optional<double> part_mean_ms(const RunRecord& run, const std::string& part) {
  double sum = 0;
  int num_ranks_with_it = 0;
  for (const RankRecord& rank : run.ranks) {
    for (const PartTime& each : rank.parts) {
      if (each.name != part) continue;
      sum += each.mean_ms;
      ++num_ranks_with_it;
    }
  }
  if (num_ranks_with_it == 0) return std::nullopt;
  return sum / num_ranks_with_it;
}

std::string fact_text(const RunRecord& run, const std::string& name) {
  const LogValue* value = run.facts.find(name);
  return value == nullptr ? "" : text_of(*value);
}

bool fact_is_true(const RunRecord& run, const std::string& name) {
  return fact_text(run, name) == "true";
}

std::string job_text(const RunRecord& run) {
  if (const std::string job = run.text("job"); !job.empty()) return job;
  const auto train = std::find(run.command.begin(), run.command.end(), "train");
  return train != run.command.end() && train + 1 != run.command.end() && !(train + 1)->starts_with('-') ? *(train + 1)
                                                                                                        : "";
}

std::string strategy_text(const RunRecord& run) {
  if (const std::string strategy = run.text("strategy"); !strategy.empty()) return strategy;
  const RecordedSetting* setting = run.setting("strategy");
  return setting == nullptr ? "" : setting->value;
}

std::string precision_text(const RunRecord& run) {
  if (const std::string precision = run.text("precision"); !precision.empty()) return precision;
  if (run.setting("bf16") == nullptr && run.setting("fp16") == nullptr) return "";
  return is_on(run, "bf16") ? "bf16" : is_on(run, "fp16") ? "fp16" : "fp32";
}

int num_ranks(const RunRecord& run) {
  if (const std::optional<double> ranks = run.facts.number("ranks")) return static_cast<int>(*ranks);
  return static_cast<int>(run.hosts.size());  // one entry per rank
}

int num_nodes(const RunRecord& run) {
  if (const std::optional<double> nodes = run.facts.number("nodes")) return static_cast<int>(*nodes);
  return static_cast<int>(std::set<std::string>(run.hosts.begin(), run.hosts.end()).size());
}

std::int64_t steps_done(const RunRecord& run) {
  if (run.steps_done) return *run.steps_done;
  for (auto record = run.metrics.rbegin(); record != run.metrics.rend(); ++record) {
    if (const std::optional<double> step = record->number("step")) return static_cast<std::int64_t>(*step);
  }
  return 0;
}

std::string with_counts(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& word : words) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& each) { return each.first == word; });
    if (same == counts.end()) {
      counts.emplace_back(word, 1);
    } else {
      ++same->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [word, count] : counts) parts.push_back(count == 1 ? word : fmt::format("{} x {}", count, word));
  return join(parts, ", ");
}

}  // namespace tessera
