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
  Answer answer{question};
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
  return fmt::format("; from {} to {} {}", counted(num_ranks(fewest), "GPU"), num_ranks(most), join(changes, ", "));
}

std::string memory_change(const RunRecord& now, const RunRecord& before) {
  const std::optional<CommonFigure> peak = common_peak({&now, &before});
  if (!peak) return "";
  return fmt::format("; peak GPU memory ({}) {:.0f} MiB against {:.0f} MiB: {}", peak->name, peak->MiB[0], peak->MiB[1],
                     percent_text(peak->MiB[0], peak->MiB[1]));
}

}  // namespace

void cost_of_offload(const Question& question, const Runs& group, Answers& answers) {
  const auto plain = std::find_if(group.begin(), group.end(), [](const RunRecord* run) { return !offloads(*run); });
  if (plain == group.end()) return;
  for (const RunRecord* run : group) {
    if (!offloads(*run)) continue;
    const std::string strategy = strategy_text(*run);
    Answer& answer = answers.emplace_back(speed_answer(
        fmt::format("{} ({}{}; {}; {})", question.question, strategy,
                    fact_is_true(*run, "pin_memory") ? ", pinned" : "", model_text(*run), ranks_text(*run)),
        *run, **plain, fmt::format("{} with offload", strategy)));
    if (answer.why_not.empty()) answer.arithmetic += memory_change(*run, **plain);
  }
}

void effect_of_pinning(const Question& question, const Runs& group, Answers& answers) {
  const RunRecord *plain = nullptr, *pinned = nullptr;
  for (const RunRecord* run : group) {
    if (!offloads(*run)) continue;
    (fact_is_true(*run, "pin_memory") ? pinned : plain) = run;
  }
  if (plain == nullptr || pinned == nullptr) return;
  Answer& answer = answers.emplace_back(
      speed_answer(fmt::format("{} ({}; {})", question.question, strategy_text(*plain), ranks_text(*plain)), *pinned,
                   *plain, "pinned against plain"));
  if (!answer.why_not.empty()) return;
  const double change = *samples_per_second(*pinned) / *samples_per_second(*plain) - 1;
  const std::string verdict = std::abs(change) <= 0.02 ? "Hardly" : change > 0 ? "Yes" : "No";
  answer.answer = verdict + "; " + answer.answer;
}

void within_against_across_nodes(const Question&, const Runs& group, Answers& answers) {
  const Runs sorted = by_number(group, "nodes");
  for (std::size_t i = 1; i < sorted.size() && num_nodes(*sorted.front()) == 1; ++i) {
    const RunRecord& run = *sorted[i];
    Answer& answer = answers.emplace_back(
        speed_answer(fmt::format("{} GPUs within a node or across {} nodes? ({}, {})", num_ranks(run), num_nodes(run),
                                 model_text(run), strategy_text(run)),
                     run, *sorted.front(), fmt::format("across {} nodes against one node", num_nodes(run))));
    if (answer.why_not.empty()) answer.arithmetic += memory_change(run, *sorted.front());
  }
}

void loss_across_gpu_counts(const Question& question, const Runs& group, Answers& answers) {
  const Runs sorted = by_number(group, "ranks");
  std::vector<std::string> all;
  std::vector<double> losses;
  Runs with_loss;
  for (const RunRecord* run : sorted) {
    const std::optional<double> loss = train_loss(*run);
    if (!loss) continue;
    losses.push_back(*loss);
    with_loss.push_back(run);
    all.push_back(fmt::format("{} {:.4f} (global batch {}, {} updates)", counted(num_ranks(*run), "GPU"), *loss,
                              fact_text(*run, "global_batch"), run->total_steps));
  }
  if (losses.size() < 2) return;
  const auto [low, high] = std::minmax_element(losses.begin(), losses.end());
  const double spread = 100 * (*high - *low) / losses.front();
  answers.push_back({fmt::format("{} ({})", question.question, model_text(*sorted.front())),
                     fmt::format("{}: it differs by {:.1f} %{}", spread <= 5 ? "Yes" : "No", spread,
                                 change_of_steps(*with_loss.front(), *with_loss.back())),
                     fmt::format("({:.4f} - {:.4f}) / {:.4f}; {}", *high, *low, losses.front(), join(all, ", "))});
}

void trainer_against_callback(const Question& question, const Runs& runs, Answers& answers) {
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
  if (all.empty()) return;
  answers.push_back(
      {question.question,
       fmt::format("by at most {:+.1f} %; the callback's are higher in {} of {}{}", largest, num_higher,
                   counted(num_runs, "run"),
                   num_higher == num_runs ? ": the trainer's runtime also counts what is between updates" : ""),
       "callback against trainer: " + join(all, "; ")});
}

}  // namespace tessera::internal
