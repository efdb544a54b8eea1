#include "jobs/qa_plan.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "data/text/qa_sequence.h"
#include "jobs/planned_models.h"
#include "jobs/run_plan.h"

namespace tessera {
namespace {

// The sum of the `count` largest.
std::int64_t sum_of_largest(std::vector<std::int64_t> numbers, std::int64_t count) {
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  numbers.resize(std::min(numbers.size(), static_cast<std::size_t>(count)));
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers) sum += number;
  return sum;
}

StepShape largest_pass(const TokenStore& tokens, std::int64_t num_rows) {
  std::vector<std::int64_t> lengths, counted;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const auto targets = tokens.targets(row);
    lengths.push_back(tokens.length(row));
    counted.push_back(std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget));
  }
  StepShape shape;
  shape.num_sequences = std::min(num_rows, tokens.size());
  shape.longest = tokens.counts().longest;
  shape.num_tokens = sum_of_largest(std::move(lengths), num_rows);
  shape.num_counted = sum_of_largest(std::move(counted), num_rows);
  return shape;
}

}  // namespace

PlanReport plan_of_rows(const TrainSettings& settings, const QaModel& model, const TokenStore& training,
                        const World& world, bool merges) {
  PlannedModel planned = planned_language_model(*model.model, model.config, "config.json");
  const StepShape pass = largest_pass(training, settings.loop.batch_size * (merges ? settings.loop.accumulation : 1));
  return plan_of_pass(settings, *model.model, std::move(planned), pass, world, merges);
}

}  // namespace tessera
