// How much a run had to send.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/text.h"
#include "parallel/placement.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

// None: the strategy has no collectives, or the record was written by another program.
std::optional<Placement> row_of(const RunRecord& run) {
  const std::string strategy = strategy_text(run);
  const std::vector<std::string> names = strategy_names();
  if (std::find(names.begin(), names.end(), strategy) == names.end()) return std::nullopt;
  const Placement& row = placement_of(strategy);
  return row.is_for_one_rank ? std::nullopt : std::optional(row);
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
  const std::optional<Placement> row = row_of(run);
  const bool is_root = collective.unit == "root";
  if (!row || (!is_root && number_of_unit(collective.unit) < 0)) return std::nullopt;
  const double micro_steps = num_micro_steps(run, updates);
  if (collective.operation == "all_gather") {
    if (is_root || !row->parameters.is_split()) return updates;
    // In forward and in backward; the last unit is kept between them.
    const bool is_kept = !row->released_after_forward || is_last_unit(run, collective.unit);
    return is_kept ? micro_steps : 2 * micro_steps;
  }
  if (collective.operation == "reduce_scatter") return row->gradients.is_split() ? micro_steps : updates;
  if (collective.operation == "all_reduce" && row->parameters.is_split()) return micro_steps;
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
