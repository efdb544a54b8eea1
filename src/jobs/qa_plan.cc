#include "jobs/qa_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "data/loading/text_batches.h"
#include "data/text/qa_sequence.h"
#include "jobs/planned_models.h"
#include "jobs/run_plan.h"

namespace tessera {
namespace {

// The sum of the `count` largest; of more than there are, each counts again.
std::int64_t sum_of_largest(std::vector<std::int64_t> numbers, std::int64_t count) {
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  const auto sum_of = [&](std::int64_t end) {
    return std::accumulate(numbers.begin(), numbers.begin() + end, std::int64_t{0});
  };
  const std::int64_t size = std::ssize(numbers);
  if (size == 0) return 0;
  return count / size * sum_of(size) + sum_of(count % size);
}

// The most rows of one pass on a rank. Several ranks drop or repeat rows, so that all have as many whole batches.
std::int64_t most_rows(const TrainSettings& settings, std::int64_t num_rows, int num_ranks, bool merges) {
  const LoopSettings& loop = settings.loop;
  const std::int64_t asked = loop.batch_size * (merges ? loop.accumulation : 1), round = loop.batch_size * num_ranks;
  const std::int64_t num_rounds = (num_rows + (settings.data.drop_last ? 0 : round - 1)) / round;
  return std::min(asked, num_ranks == 1 ? num_rows : num_rounds * loop.batch_size);
}

StepShape largest_pass(const TokenStore& tokens, std::int64_t num_rows, const PackOptions& packing) {
  std::vector<std::int64_t> lengths, counted;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const auto targets = tokens.targets(row);
    lengths.push_back(tokens.length(row));
    counted.push_back(std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget));
  }
  StepShape shape;
  shape.num_sequences = num_rows;
  shape.longest = tokens.counts().longest;
  shape.num_tokens = packing.num_tokens(sum_of_largest(std::move(lengths), num_rows));
  shape.num_counted = sum_of_largest(std::move(counted), num_rows);
  return shape;
}

}  // namespace

PlanReport plan_of_rows(const TrainSettings& settings, const QaModel& model, const TokenStore& training,
                        const World& world, bool merges) {
  PlannedModel planned = planned_language_model(*model.model, model.config, "config.json");
  const StepShape pass = largest_pass(training, most_rows(settings, training.size(), world.size(), merges),
                                      PackOptions::of(world.device()));
  return plan_of_pass(settings, *model.model, std::move(planned), pass, world, merges);
}

}  // namespace tessera
