// Questions about memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/quantity.h"
#include "core/text.h"
#include "record/metrics.h"
#include "results/question_parts.h"

namespace tessera::internal {
namespace {

constexpr double kTie = 0.01;  // closer than this share is a tie

// Parameters, gradients and optimizer: what a rank holds between steps, by the plan.
std::optional<double> planned_state(const RunRecord& run) {
  double bytes = 0;
  for (const char* part : {"parameters", "gradients", "optimizer"}) {
    const std::optional<double> value = run.planned_memory.number(part);
    if (!value) return std::nullopt;
    bytes += *value;
  }
  return bytes;
}

std::string states_text(const Runs& runs) {
  std::vector<std::string> parts;
  for (const RunRecord* run : runs) {
    if (const std::optional<double> state = planned_state(*run)) {
      parts.push_back(fmt::format("{} {}", strategy_text(*run), human_bytes(static_cast<std::int64_t>(*state))));
    }
  }
  return parts.empty() ? "" : "; state between steps, by the plan: " + join(parts, ", ");
}

// Those whose layers per rank stay as ranks grow; none: there are no two.
Runs weakly_scaled(const Runs& group) {
  Runs sorted = by_number(group, "ranks");
  std::erase_if(sorted, [](const RunRecord* run) { return number_fact(*run, "num_layers") == 0; });
  if (sorted.empty()) return {};
  const auto layers_per_rank = [](const RunRecord* run) { return number_fact(*run, "num_layers") / num_ranks(*run); };
  const double first = layers_per_rank(sorted.front());
  std::erase_if(sorted, [&](const RunRecord* run) { return layers_per_rank(run) != first; });
  return sorted.size() < 2 ? Runs() : sorted;
}

// How each part of the plan changes from the first run to the last.
std::string plan_changes(const RunRecord& first, const RunRecord& last) {
  std::vector<std::string> parts;
  for (const char* part : {"parameters", "gradients", "optimizer", "in_flight", "activations"}) {
    const std::optional<double> before = first.planned_memory.number(part), after = last.planned_memory.number(part);
    if (!before || !after || *before == *after) continue;
    const double MiB = (*after - *before) / kBytesPerMb;
    parts.push_back(fmt::format("{} {:+.0f} MiB", part, MiB));
  }
  return parts.empty() ? "" : fmt::format("; by the plan, from first to last: {}", join(parts, ", "));
}

constexpr const char* kNoPeak = "the runs have no figure of peak GPU memory in common";

}  // namespace

void lowest_peak(const Question& question, const Runs& group, Answers& answers) {
  if (group.size() < 2) return;
  const RunRecord& first = *group.front();
  Answer& answer =
      answers.emplace_back(Answer{fmt::format("{} ({}; {})", question.question, model_text(first), ranks_text(first))});
  const std::optional<CommonFigure> peak = common_peak(group);
  if (!peak) {
    answer.why_not = kNoPeak;
    return;
  }
  const double least = *std::min_element(peak->MiB.begin(), peak->MiB.end());
  std::vector<std::string> winners, all;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (peak->MiB[i] <= least * (1 + kTie)) winners.push_back(strategy_text(*group[i]));
    all.push_back(fmt::format("{} {:.0f} MiB", strategy_text(*group[i]), peak->MiB[i]));
  }
  answer.answer = winners.size() == 1 ? fmt::format("{}, with {:.0f} MiB", winners.front(), least)
                                      : fmt::format("{} are equal within 1 %: {:.0f} MiB", join(winners, ", "), least);
  if (num_ranks(first) == 1) answer.answer += ". At 1 rank the stages are equal by construction";
  answer.arithmetic = fmt::format("peak GPU memory ({}): {}{}", peak->name, join(all, ", "), states_text(group));
}

void memory_under_weak_scaling(const Question& question, const Runs& group, Answers& answers) {
  const Runs runs = weakly_scaled(group);
  if (runs.empty()) return;
  Answer& answer = answers.emplace_back(Answer{question.question});
  const std::optional<CommonFigure> peak = common_peak(runs);
  if (!peak) {
    answer.why_not = kNoPeak;
    return;
  }
  const auto [low, high] = std::minmax_element(peak->MiB.begin(), peak->MiB.end());
  const double deviation = 100 * (*high - *low) / peak->MiB.front();
  std::vector<std::string> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    all.push_back(fmt::format("{} GPUs {:.0f} MiB", num_ranks(*runs[i]), peak->MiB[i]));
  }
  answer.answer =
      fmt::format("{}: it varies by {:.1f} % of the smallest setup's", deviation <= 5 ? "Yes" : "No", deviation);
  answer.arithmetic = fmt::format("({:.0f} - {:.0f}) / {:.0f} MiB ({}); {}{}", *high, *low, peak->MiB.front(),
                                  peak->name, join(all, ", "), plan_changes(*runs.front(), *runs.back()));
}

void speed_under_weak_scaling(const Question& question, const Runs& group, Answers& answers) {
  const Runs runs = weakly_scaled(group);
  if (runs.empty()) return;
  Answer& answer = answers.emplace_back(Answer{question.question});
  std::vector<std::string> all;
  std::vector<double> per_gpu;
  for (const RunRecord* run : runs) {
    const std::optional<double> total = samples_per_second(*run);
    if (!total) continue;
    per_gpu.push_back(*total / num_ranks(*run));
    all.push_back(fmt::format("{} GPUs: {:.3f} in all, {:.3f} per GPU", num_ranks(*run), *total, per_gpu.back()));
  }
  if (per_gpu.size() < 2) {
    answer.why_not = "fewer than two of the runs recorded samples/s";
    return;
  }
  const double change = 100 * (per_gpu.back() / per_gpu.front() - 1);
  const std::string verdict =
      std::abs(change) <= 5 ? "stay" : fmt::format("change by {:+.1f} % from the fewest to the most GPUs", change);
  answer.answer = fmt::format("Per GPU they {}; in all they should grow with the GPUs", verdict);
  answer.arithmetic = join(all, "; ");
}

void memory_with_more_nodes(const Question& question, const Runs& group, Answers& answers) {
  const Runs sorted = by_number(group, "nodes");
  if (sorted.size() < 2 || num_nodes(*sorted.back()) < 2) return;
  const RunRecord& first = *sorted.front();
  Answer& answer = answers.emplace_back(
      Answer{fmt::format("{} ({}, {})", question.question, model_text(first), strategy_text(first))});
  const std::optional<CommonFigure> average = common_average(sorted);
  if (!average) {
    answer.why_not = "the runs have no figure of average GPU memory in common";
    return;
  }
  // The line of least squares.
  const double count = static_cast<double>(sorted.size());
  double mean_nodes = 0, mean_MiB = 0, product = 0, square = 0;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    mean_nodes += num_nodes(*sorted[i]) / count;
    mean_MiB += average->MiB[i] / count;
    all.push_back(fmt::format("{} nodes {:.0f} MiB", num_nodes(*sorted[i]), average->MiB[i]));
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double nodes = num_nodes(*sorted[i]) - mean_nodes;
    product += nodes * (average->MiB[i] - mean_MiB);
    square += nodes * nodes;
  }
  const double change = average->MiB.back() / average->MiB.front() - 1;
  const char* verdict = std::abs(change) <= 0.02 ? "Stable" : change > 0 ? "Up" : "Down";
  answer.answer = fmt::format("{}: {:+.1f} % from {} to {} nodes", verdict, 100 * change, num_nodes(first),
                              num_nodes(*sorted.back()));
  answer.arithmetic =
      fmt::format("{:+.1f} MiB per node (least squares) of {} ({})", product / square, join(all, ", "), average->name);
  if (strategy_text(first) == "zero2") {
    answer.arithmetic += "; ZeRO-2's optimizer state and gradients shrink by 1 / ranks";
  }
}

void sharding_on_one_gpu(const Question& question, const Runs& group, Answers& answers) {
  if (num_ranks(*group.front()) != 1) return;
  const RunRecord *baseline = nullptr, *sharded = nullptr;
  for (const RunRecord* run : group) {
    if (offloads(*run)) continue;
    if (strategy_text(*run) == "single") baseline = run;
    if (strategy_text(*run) == "full_shard") sharded = run;
  }
  if (baseline == nullptr || sharded == nullptr) return;
  Answer& answer = answers.emplace_back(Answer{fmt::format("{} ({})", question.question, model_text(*baseline))});
  const std::optional<CommonFigure> peak = common_peak({baseline, sharded});
  if (!peak) {
    answer.why_not = kNoPeak;
    return;
  }
  const double before = peak->MiB[0], now = peak->MiB[1];
  answer.answer = fmt::format("{} At 1 rank there is nobody to share with: a shard is the whole",
                              now / before - 1 < -kTie ? "Yes, though not because of sharding." : "No.");
  answer.arithmetic = fmt::format("peak ({}): full_shard {:.0f} MiB, baseline {:.0f} MiB: {}", peak->name, now, before,
                                  percent_text(now, before));
}

void share_of_blocks(const Runs& group, const std::vector<ModelSize>& models, Answers& answers) {
  const auto parameters = static_cast<long long>(number_fact(*group.front(), "num_parameters"));
  for (const ModelSize& model : models) {
    if (model.num_parameters != parameters) continue;
    const long long width = model.hidden_size;
    const long long in_blocks = model.num_layers * (12 * width * width + 13 * width);  // BLOOM's blocks
    const double share = 100.0 * static_cast<double>(in_blocks) / static_cast<double>(parameters);
    answers.push_back({fmt::format("How much of {} is in its blocks?", model.name),
                       fmt::format("{:.0f} %{}", share, model.remark.empty() ? "" : fmt::format(" ({})", model.remark)),
                       fmt::format("{} blocks of 12 x {}^2 + 13 x {} parameters: {} of {}", model.num_layers, width,
                                   width, grouped(in_blocks), grouped(parameters))});
  }
}

}  // namespace tessera::internal
