#include "jobs/qa_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "data/loading/sampler.h"
#include "data/loading/text_batches.h"
#include "data/text/qa_sequence.h"
#include "jobs/run_plan.h"
#include "plan/planned_model.h"

namespace tessera {
namespace {

constexpr std::int64_t kMostEpochs = 20;  // that are looked at: later ones hardly have a larger pass

// In a round every rank takes a batch.
std::int64_t num_rounds_of(std::int64_t num_rows, std::int64_t batch_size, std::int64_t num_ranks) {
  return (num_rows + batch_size * num_ranks - 1) / (batch_size * num_ranks);
}

// That are looked at.
std::int64_t num_epochs(const TrainSettings& settings, std::int64_t num_rows, int num_ranks) {
  const LoopSettings& loop = settings.loop;
  const std::int64_t num_rounds = settings.data.drop_last ? num_rows / (loop.batch_size * num_ranks)
                                                          : num_rounds_of(num_rows, loop.batch_size, num_ranks);
  const auto updates = static_cast<double>(std::max<std::int64_t>(1, num_rounds / loop.accumulation));
  const double epochs = loop.max_steps > 0 ? static_cast<double>(loop.max_steps) / updates : loop.num_epochs;
  return static_cast<std::int64_t>(std::clamp(std::ceil(epochs), 1.0, static_cast<double>(kMostEpochs)));
}

// The largest sum over the rows of one pass on any rank, the rows being dealt as QaTask does: an epoch's batches go to
// the ranks in turn, and `num_merged` of a rank's batches are one pass.
std::int64_t largest_sum(const std::vector<std::int64_t>& of_row, const std::vector<std::int64_t>& order,
                         std::int64_t batch_size, std::int64_t num_ranks, std::int64_t num_merged) {
  const std::int64_t num_rows = std::ssize(order), num_rounds = num_rounds_of(num_rows, batch_size, num_ranks);
  const std::int64_t sum_of_all = std::accumulate(of_row.begin(), of_row.end(), std::int64_t{0});
  std::int64_t largest = 0;
  for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
    std::int64_t sum = 0;
    for (std::int64_t round = 0; round < num_rounds; ++round) {
      if (round % num_merged == 0) sum = 0;
      const std::int64_t begin = (round * num_ranks + rank) * batch_size;
      // Several ranks fill the last round up with an epoch's first rows.
      const std::int64_t end = num_ranks == 1 ? std::min(begin + batch_size, num_rows) : begin + batch_size;
      sum += (end - begin) / num_rows * sum_of_all;
      for (std::int64_t i = begin; i < begin + (end - begin) % num_rows; ++i) {
        sum += of_row[static_cast<std::size_t>(order[static_cast<std::size_t>(i % num_rows)])];
      }
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

StepShape largest_pass(const TokenStore& tokens, const TrainSettings& settings, const World& world, bool merges) {
  const LoopSettings& loop = settings.loop;
  const std::int64_t num_merged = merges ? loop.accumulation : 1;
  std::vector<std::int64_t> lengths, counted;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const auto targets = tokens.targets(row);
    lengths.push_back(tokens.length(row));
    counted.push_back(std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget));
  }
  StepShape shape;
  shape.longest = tokens.counts().longest;
  if (tokens.size() == 0) return shape;
  const std::int64_t num_rounds = num_rounds_of(tokens.size(), loop.batch_size, world.size());
  shape.num_sequences = std::min(num_merged, num_rounds) * loop.batch_size;
  if (world.size() == 1) shape.num_sequences = std::min(shape.num_sequences, tokens.size());
  Sampler sampler({.num_rows = tokens.size(),
                   .order = settings.data.shuffle ? Order::kShuffled : Order::kSequential,
                   .seed = static_cast<std::uint64_t>(loop.data_seed)});
  for (std::int64_t epoch = 0; epoch < num_epochs(settings, tokens.size(), world.size()); ++epoch) {
    sampler.start_epoch(epoch);
    const std::vector<std::int64_t> order = sampler.indices();
    const auto largest = [&](const std::vector<std::int64_t>& of_row) {
      return largest_sum(of_row, order, loop.batch_size, world.size(), num_merged);
    };
    shape.num_tokens = std::max(shape.num_tokens, PackOptions::of(world.device()).num_tokens(largest(lengths)));
    shape.num_counted = std::max(shape.num_counted, largest(counted));
  }
  return shape;
}

}  // namespace

PlanReport plan_of_rows(const TrainSettings& settings, const QaModel& model, const TokenStore& training,
                        const World& world, bool merges) {
  PlannedModel planned = planned_language_model(*model.model, model.config, "config.json");
  const StepShape pass = largest_pass(training, settings, world, merges);
  return plan_of_pass(settings, *model.model, std::move(planned), pass, world, merges);
}

}  // namespace tessera
