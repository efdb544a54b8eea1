#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "core/text.h"
#include "plan/memory_plan.h"

namespace tessera {
namespace {

struct Change {
  std::string text;
  std::function<void(PlanRequest&)> apply;
};
using Family = std::vector<Change>;  // of one kind, the gentlest first

// Halves the sequences and doubles the micro-steps, repeatedly: the same update.
Family smaller_batches(const PlanRequest& request) {
  Family family;
  for (std::int64_t factor = 2; request.shape.num_sequences % factor == 0; factor *= 2) {
    const std::int64_t num_sequences = request.shape.num_sequences / factor;
    const int num_micro_steps = request.options.num_micro_steps * static_cast<int>(factor);
    family.push_back({fmt::format("--per_device_train_batch_size {} --gradient_accumulation_steps {}", num_sequences,
                                  num_micro_steps),
                      [factor, num_sequences, num_micro_steps](PlanRequest& changed) {
                        changed.shape.num_sequences = num_sequences;
                        changed.shape.num_tokens /= factor;
                        changed.shape.num_counted /= factor;
                        changed.options.num_micro_steps = num_micro_steps;
                        changed.options.types.accumulates = true;
                      }});
  }
  return family;
}

Family checkpointing(const PlanRequest& request) {
  if (request.options.checkpoints_activations) return {};
  return {{"--gradient_checkpointing", [](PlanRequest& changed) { changed.options.checkpoints_activations = true; }}};
}

// Strategies that split more than the current one.
Family strategies(const PlanRequest& request) {
  const Placement& now = placement_of(request.options.spread.strategy);
  if (request.options.num_ranks == 1 || now.is_for_one_rank) return {};
  const auto num_split = [](const Placement& row) {
    return row.optimizer.is_split() + row.gradients.is_split() + row.parameters.is_split() + row.released_after_forward;
  };
  // By how much they split; of rows that split alike the last of the table, FSDP's.
  std::map<int, std::string> rows;
  for (const std::string& name : strategy_names()) {
    const Placement& row = placement_of(name);
    if (row.optimizer.over != Over::kWorld || row.keeps_second_copy() || num_split(row) <= num_split(now)) continue;
    rows[num_split(row)] = name;
  }
  Family family;
  for (const auto& [number, name] : rows) {
    family.push_back({fmt::format("--strategy {}", name),
                      [strategy = name](PlanRequest& changed) { changed.options.spread.strategy = strategy; }});
  }
  return family;
}

Family offload(const PlanRequest& request) {
  const SpreadOptions& spread = request.options.spread;
  if (!request.options.on_gpu || spread.offload_optimizer) return {};
  Family family{{"--offload_optimizer", [](PlanRequest& changed) { changed.options.spread.offload_optimizer = true; }}};
  if (placement_of(spread.strategy).parameters.is_split()) {
    family.push_back({"--offload_optimizer --offload_param", [](PlanRequest& changed) {
                        changed.options.spread.offload_optimizer = changed.options.spread.offload_parameters = true;
                      }});
  }
  return family;
}

Family types(const PlanRequest& request) {
  if (request.shape.element_bytes != 4) return {};
  return {{"--bf16", [](PlanRequest& changed) {
             UnitTypes& units = changed.options.types;
             if (!changed.shape.casts_parameters) units.compute = units.reduce = at::kBFloat16;
             changed.shape.element_bytes = 2;
           }}};
}

// The gentlest combination that fits, with one change from each family; `texts` are those of the changes so far.
std::optional<MemoryAdvice> first_fit(const PlannedModel& model, const std::vector<const Family*>& families,
                                      const PlanRequest& request, std::int64_t limit_bytes,
                                      const std::vector<std::string>& texts = {}) {
  if (texts.size() == families.size()) {
    MemoryPlan plan = plan_memory(model, request);
    if (plan.peak.total() > limit_bytes) return std::nullopt;
    return MemoryAdvice{join(texts, " "), request, std::move(plan)};
  }
  for (const Change& change : *families[texts.size()]) {
    PlanRequest changed = request;
    change.apply(changed);
    std::vector<std::string> longer = texts;
    longer.push_back(change.text);
    if (auto found = first_fit(model, families, changed, limit_bytes, longer)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> most_units_on_device(const PlannedModel& model, const PlanRequest& request,
                                                 std::int64_t limit_bytes) {
  const auto fits = [&](std::int64_t number) {
    PlanRequest changed = request;
    changed.options.spread.units_on_device = number;
    return plan_memory(model, changed).peak.total() <= limit_bytes;
  };
  if (!fits(0)) return std::nullopt;
  std::int64_t fitting = 0, too_many = std::ssize(model.units) + 1;
  while (fitting + 1 < too_many) {
    const std::int64_t middle = (fitting + too_many) / 2;
    (fits(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

std::vector<MemoryAdvice> advise(const PlannedModel& model, const PlanRequest& request, std::int64_t limit_bytes,
                                 std::size_t at_most) {
  // In order of cost: more micro-steps cost next to nothing, a second forward a third of the time, more collectives
  // depend on the network, another type changes the numbers, and host memory is slow.
  const std::vector<Family> families = {smaller_batches(request), checkpointing(request), strategies(request),
                                        types(request), offload(request)};
  std::vector<MemoryAdvice> found;
  std::vector<unsigned> tried;  // sets of families that fit: their supersets change more than necessary
  for (int size = 1; size <= static_cast<int>(families.size()); ++size) {
    for (unsigned set = 1; set < 1u << families.size() && found.size() < at_most; ++set) {
      if (std::popcount(set) != size) continue;
      if (std::any_of(tried.begin(), tried.end(), [set](unsigned enough) { return (set & enough) == enough; }))
        continue;
      std::vector<const Family*> chosen;
      for (std::size_t i = 0; i < families.size(); ++i) {
        if (set >> i & 1) chosen.push_back(&families[i]);
      }
      if (auto fit = first_fit(model, chosen, request, limit_bytes)) {
        found.push_back(std::move(*fit));
        tried.push_back(set);
      }
    }
  }
  return found;
}

}  // namespace tessera
