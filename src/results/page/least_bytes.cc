#include "results/page/least_bytes.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "record/figures.h"

namespace tessera {
namespace {

enum class Split { kNothing, kOptimizer, kGradients, kKeptParameters, kParameters };

// What a strategy splits, beyond what the one before it splits; kept: from forward to backward.
std::optional<Split> split_of(const std::string& strategy) {
  for (const char* name : {"ddp", "zero0", "no_shard"}) {
    if (strategy == name) return Split::kNothing;
  }
  if (strategy == "zero1") return Split::kOptimizer;
  if (strategy == "zero2") return Split::kGradients;
  if (strategy == "shard_grad_op" || strategy == "hybrid_shard_zero2") return Split::kKeptParameters;
  for (const char* name : {"zero3", "full_shard", "zero3_hpz", "hybrid_shard"}) {
    if (strategy == name) return Split::kParameters;
  }
  return std::nullopt;
}

// 11 of "block_11" and of "transformer.h.11"; -1: it has no number.
long long number_of_unit(const std::string& unit) {
  const std::size_t begin = unit.find_last_not_of("0123456789") + 1;
  return parse_integer(unit.substr(begin)).value_or(-1);
}

bool is_last_unit(const RunRecord& run, const std::string& unit) {
  return std::all_of(run.collectives.begin(), run.collectives.end(),
                     [&](const CollectiveRecord& each) { return number_of_unit(each.unit) <= number_of_unit(unit); });
}

// The last update of an epoch may have fewer micro-steps than the others.
double num_micro_steps(const RunRecord& run, double updates) {
  if (fact_is_true(run, "merge_accumulation")) return updates;
  const double most = updates * run.facts.number("accumulation").value_or(1);
  const auto rows = run.facts.number("train_rows"), batch = run.facts.number("batch_size"), epochs = run.last("epoch");
  if (!rows || !batch || !epochs || *batch <= 0 || num_ranks(run) < 1) return most;
  const double batches = std::round(*epochs * std::ceil(*rows / (*batch * num_ranks(run))));
  const double steps = run.last("step").value_or(0);                    // to which the epochs belong
  return steps > 0 ? std::min(most, batches * updates / steps) : most;  // without those before it resumed
}

std::optional<double> least_calls(const RunRecord& run, const CollectiveRecord& collective, double updates) {
  const std::optional<Split> split = split_of(strategy_text(run));
  const bool is_root = collective.unit == "root";
  if (!split || (!is_root && number_of_unit(collective.unit) < 0)) return std::nullopt;
  const double micro_steps = num_micro_steps(run, updates);
  if (collective.operation == "all_gather") {
    if (is_root || *split < Split::kKeptParameters) return updates;
    // In forward and in backward; the last unit is kept between them.
    const bool is_kept = *split == Split::kKeptParameters || is_last_unit(run, collective.unit);
    return is_kept ? micro_steps : 2 * micro_steps;
  }
  if (collective.operation == "reduce_scatter") return *split < Split::kGradients ? updates : micro_steps;
  if (collective.operation == "all_reduce" && *split >= Split::kKeptParameters) return micro_steps;
  return std::nullopt;
}

}  // namespace

std::optional<double> least_bytes(const RunRecord& run, const CollectiveRecord& collective) {
  const double updates = static_cast<double>(steps_done(run)) - run.facts.number("first_step").value_or(0);
  if (collective.calls == 0 || updates <= 0) return std::nullopt;
  const std::optional<double> calls = least_calls(run, collective, updates);
  if (!calls) return std::nullopt;
  return *calls * static_cast<double>(collective.bytes) / static_cast<double>(collective.calls);
}

}  // namespace tessera
