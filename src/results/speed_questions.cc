// Questions about speed and loss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "record/metrics.h"
#include "results/question_parts.h"

namespace tessera::internal {
namespace {

// "samples/s 2.375 against 4.750: -50.0 %", of those figures that both runs have. Runtimes only of equally many rows.
std::vector<std::string> speed_changes(const RunRecord& now, const RunRecord& before) {
  std::vector<std::string> changes;
  const std::optional<double> speed = samples_per_second(now), speed_before = samples_per_second(before);
  if (speed && speed_before) {
    changes.push_back(
        fmt::format("samples/s {:.3f} against {:.3f}: {}", *speed, *speed_before, percent_text(*speed, *speed_before)));
  }
  const std::optional<double> runtime = runtime_seconds(now), runtime_before = runtime_seconds(before);
  const bool has_equal_rows = fact_text(now, "train_rows") == fact_text(before, "train_rows");
  if (runtime && runtime_before && has_equal_rows) {
    changes.push_back(fmt::format("runtime {:.2f} s against {:.2f} s: {}", *runtime, *runtime_before,
                                  percent_text(*runtime, *runtime_before)));
  }
  return changes;
}

// A pair of runs, judged by samples/s.
Answer speed_answer(const std::string& question, const RunRecord& now, const RunRecord& before,
                    const std::string& what) {
  Answer answer{question, "", "", ""};
  const std::optional<double> speed = samples_per_second(now), speed_before = samples_per_second(before);
  if (!speed || !speed_before) {
    answer.why_not = "one of the runs recorded no samples/s";
    return answer;
  }
  answer.answer = fmt::format("{}: {} samples/s", what, percent_text(*speed, *speed_before));
  answer.arithmetic = join(speed_changes(now, before), "; ");
  return answer;
}

// What else differs from the fewest GPUs to the most: "; from 1 GPU to 4 the global batch goes from 4 to 16, updates
// from 625 to 157".
std::string change_of_steps(const RunRecord& fewest, const RunRecord& most) {
  const std::string batch = fact_text(fewest, "global_batch"), batch_of_most = fact_text(most, "global_batch");
  std::vector<std::string> changes;
  if (batch != batch_of_most)
    changes.push_back(fmt::format("the global batch goes from {} to {}", batch, batch_of_most));
  if (fewest.total_steps != most.total_steps) {
    changes.push_back(fmt::format("updates go from {} to {}", fewest.total_steps, most.total_steps));
  }
  if (changes.empty()) return "; global batch and updates are the same";
  return fmt::format("; from {} GPU{} to {} {}", num_ranks(fewest), num_ranks(fewest) == 1 ? "" : "s", num_ranks(most),
                     join(changes, ", "));
}

std::string memory_change(const RunRecord& now, const RunRecord& before) {
  const std::optional<CommonFigure> peak = common_peak({&now, &before});
  if (!peak) return "";
  return fmt::format("; peak GPU memory ({}) {:.0f} MiB against {:.0f} MiB: {}", peak->name, peak->MiB[0], peak->MiB[1],
                     percent_text(peak->MiB[0], peak->MiB[1]));
}

}  // namespace

std::vector<Answer> cost_of_offload(const Runs& runs) {
  std::vector<Answer> answers;
  for (const Runs& group : grouped_by(runs, {"job", "num_parameters", "strategy", "ranks", "nodes", "batch_size"})) {
    const auto plain = std::find_if(group.begin(), group.end(), [](const RunRecord* run) { return !offloads(*run); });
    if (plain == group.end()) continue;
    for (const RunRecord* run : group) {
      if (!offloads(*run)) continue;
      const std::string strategy = strategy_text(*run);
      Answer answer = speed_answer(
          fmt::format("What does offload cost? ({}{}; {}; {})", strategy,
                      fact_is_true(*run, "pin_memory") ? ", pinned" : "", model_text(*run), ranks_text(*run)),
          *run, **plain, fmt::format("{} with offload", strategy));
      if (answer.why_not.empty()) answer.arithmetic += memory_change(*run, **plain);
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

std::vector<Answer> effect_of_pinning(const Runs& runs) {
  std::vector<Answer> answers;
  for (const Runs& group : grouped_by(runs, {"job", "num_parameters", "strategy", "ranks", "nodes", "batch_size"})) {
    const RunRecord *plain = nullptr, *pinned = nullptr;
    for (const RunRecord* run : group) {
      if (!offloads(*run)) continue;
      (fact_is_true(*run, "pin_memory") ? pinned : plain) = run;
    }
    if (plain == nullptr || pinned == nullptr) continue;
    Answer answer = speed_answer(fmt::format("Does pinning help? ({}; {})", strategy_text(*plain), ranks_text(*plain)),
                                 *pinned, *plain, "pinned against plain");
    if (answer.why_not.empty()) {
      const double change = *samples_per_second(*pinned) / *samples_per_second(*plain) - 1;
      answer.answer = fmt::format("{}; {}",
                                  std::abs(change) <= 0.02 ? "Hardly"
                                  : change > 0             ? "Yes"
                                                           : "No",
                                  answer.answer);
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::vector<Answer> within_against_across_nodes(const Runs& runs) {
  std::vector<Answer> answers;
  for (const Runs& group : grouped_by(runs, {"job", "num_parameters", "strategy", "offload_optimizer",
                                             "units_on_device", "pin_memory", "ranks", "batch_size"})) {
    const Runs sorted = by_number(group, "nodes");
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (num_nodes(*sorted.front()) != 1) break;
      Answer answer = speed_answer(
          fmt::format("{} GPUs within a node or across {} nodes? ({}, {})", num_ranks(*sorted[i]),
                      num_nodes(*sorted[i]), model_text(*sorted[i]), strategy_text(*sorted[i])),
          *sorted[i], *sorted.front(), fmt::format("across {} nodes against one node", num_nodes(*sorted[i])));
      if (answer.why_not.empty()) answer.arithmetic += memory_change(*sorted[i], *sorted.front());
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

std::vector<Answer> loss_across_gpu_counts(const Runs& runs) {
  std::vector<Answer> answers;
  for (const Runs& group : grouped_by(runs, {"job", "num_parameters", "label_mode", "precision", "batch_size"})) {
    const Runs sorted = by_number(group, "ranks");
    std::vector<std::string> all;
    std::vector<double> losses;
    Runs with_loss;
    for (const RunRecord* run : sorted) {
      const std::optional<double> loss = train_loss(*run);
      if (!loss) continue;
      losses.push_back(*loss);
      with_loss.push_back(run);
      all.push_back(fmt::format("{} GPU{} {:.4f} (global batch {}, {} updates)", num_ranks(*run),
                                num_ranks(*run) == 1 ? "" : "s", *loss, fact_text(*run, "global_batch"),
                                run->total_steps));
    }
    if (losses.size() < 2) continue;
    const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
    const double spread = 100 * (*high - *low) / losses.front();
    answers.push_back({fmt::format("Is the loss alike across GPU counts? ({})", model_text(*sorted.front())),
                       fmt::format("{}: it differs by {:.1f} %{}", spread <= 5 ? "Yes" : "No", spread,
                                   change_of_steps(*with_loss.front(), *with_loss.back())),
                       fmt::format("({:.4f} - {:.4f}) / {:.4f}; {}", *high, *low, losses.front(), join(all, ", ")),
                       ""});
  }
  return answers;
}

std::vector<Answer> trainer_against_callback(const Runs& runs) {
  std::vector<std::string> all;
  double largest = 0;
  int num_runs = 0, num_higher = 0;
  for (const RunRecord* run : runs) {
    const std::optional<double> trainer = run->last("train_samples_per_second");
    const std::optional<double> callback = run->summary.number("train/samples_per_second_mean");
    if (!trainer || !callback || *trainer == 0) continue;
    const double difference = 100 * (*callback - *trainer) / *trainer;
    if (std::abs(difference) > std::abs(largest)) largest = difference;
    ++num_runs;
    num_higher += difference > 0 ? 1 : 0;
    constexpr std::size_t kMaxShown = 8;
    if (all.size() < kMaxShown) {
      all.push_back(fmt::format("{}, {}: {:.3f} against {:.3f}: {:+.1f} %", strategy_text(*run), ranks_text(*run),
                                *callback, *trainer, difference));
    }
  }
  if (all.empty()) return {};
  return {{"How do the callback's samples/s differ from the trainer's?",
           fmt::format("by at most {:+.1f} %; the callback's are higher in {} of {} run{}{}", largest, num_higher,
                       num_runs, num_runs == 1 ? "" : "s",
                       num_higher == num_runs ? ": the trainer's runtime also counts what is between updates" : ""),
           "callback against trainer: " + join(all, "; "), ""}};
}

}  // namespace tessera::internal
