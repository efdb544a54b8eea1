#include "report/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

// The table's columns; whether the row fits and when it peaks come last.
constexpr const char* kColumns[] = {"parameters",  "gradients", "optimizer", "in flight",
                                    "activations", "total",     "host"};
constexpr std::size_t kWidth = 12;

std::size_t name_width(const PlanReport& report) {
  std::size_t width = 12;
  for (const PlanRow& row : report.rows) width = std::max(width, row.strategy.size());
  return width + 2;
}

std::string plural(std::int64_t number, const std::string& what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

std::int64_t num_parameters(const PlannedModel& model) {
  std::int64_t numel = 0;
  for (const PlannedUnit& unit : model.units) {
    for (const auto& p : unit.parameters) {
      numel += std::accumulate(p.shape.begin(), p.shape.end(), std::int64_t{1}, std::multiplies<>());
    }
  }
  return numel;
}

const char* type_name(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16" : type == at::kHalf ? "fp16" : "float32";
}

bool fits(const PlanReport& report, const PlanRow& row) {
  return row.plan.peak.total() <= *report.limit_bytes;
}

std::string heading(const PlanReport& report) {
  const MemoryPlanOptions& options = report.request.options;
  std::string text = fmt::format("{}: {} in {}\n", report.model.name, plural(num_parameters(report.model), "parameter"),
                                 plural(static_cast<std::int64_t>(report.model.units.size()), "unit"));
  text += fmt::format(
      "{}{}, {}, {}; {} per micro-batch, {} per update{}\n", plural(options.num_ranks, "rank"),
      options.ranks_per_node > 0 ? fmt::format(", {} per node", options.ranks_per_node) : "",
      type_name(options.types.compute), report.optimizer, plural(report.request.shape.num_tokens, report.model.counts),
      options.num_micro_steps == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", options.num_micro_steps),
      options.checkpoints_activations ? ", activations checkpointed" : "");
  if (options.spread.units_on_device > 0) {
    const std::int64_t num_units = std::ssize(report.model.units);
    text += fmt::format("{} of {} stay on the device with everything, the root first\n",
                        std::min(options.spread.units_on_device, num_units), plural(num_units, "unit"));
  }
  return text;
}

std::string row_text(const PlanReport& report, const PlanRow& row) {
  const MemoryUse& peak = row.plan.peak;
  std::string text = fmt::format("{:<{}}", row.strategy, name_width(report));
  for (const std::int64_t bytes : {peak.parameters, peak.gradients, peak.optimizer, peak.in_flight, peak.activations,
                                   peak.total(), row.plan.host.total()}) {
    text += fmt::format("{:>{}}", human_bytes(bytes), kWidth);
  }
  if (report.limit_bytes) text += fits(report, row) ? "  fits    " : "  too much";
  return text + fmt::format("  {}\n", row.plan.peak_moment);
}

std::string verdict(const PlanReport& report) {
  const std::string limit = human_bytes(*report.limit_bytes);
  std::vector<std::string> fitting;
  for (const PlanRow& row : report.rows) {
    if (fits(report, row)) fitting.push_back(row.strategy);
  }
  if (!fitting.empty()) return fmt::format("\nstrategies that fit in {}: {}\n", limit, join(fitting, ", "));
  std::string text = fmt::format("\nnone fits in {}", limit);
  if (report.advice.empty()) return text + "; no change of batch, checkpointing, strategy, type or offload is enough\n";
  text += fmt::format("; {} fits with\n", report.advice_for);
  for (const MemoryAdvice& advice : report.advice) {
    text += fmt::format("  {}: {}{}\n", advice.change, human_bytes(advice.plan.peak.total()),
                        advice.plan.host.total() > 0
                            ? fmt::format(", and {} of host memory", human_bytes(advice.plan.host.total()))
                            : "");
  }
  return text;
}

// What a rank copies of the state to write it while training goes on: ranks share it equally under every strategy.
std::int64_t checkpoint_copy_bytes(const PlanReport& report) {
  const MemoryPlanOptions& options = report.request.options;
  const auto state =
      static_cast<std::int64_t>(sizeof(float)) * num_parameters(report.model) * (1 + options.num_moments);
  return (state + options.num_ranks - 1) / options.num_ranks;
}

Json use_json(const MemoryUse& use) {
  return {{"parameters", use.parameters}, {"gradients", use.gradients},     {"optimizer", use.optimizer},
          {"in_flight", use.in_flight},   {"activations", use.activations}, {"total", use.total()}};
}

Json plan_fields(const MemoryPlan& plan) {
  return {{"device", use_json(plan.peak)},
          {"moment", plan.peak_moment},
          {"between_steps", use_json(plan.resident)},
          {"host", use_json(plan.host)}};
}

}  // namespace

void add_advice(PlanReport& report) {
  if (!report.limit_bytes || report.rows.empty()) return;
  const auto needs = [](const PlanRow& row) { return row.plan.peak.total(); };
  const auto least = std::min_element(report.rows.begin(), report.rows.end(),
                                      [&](const PlanRow& a, const PlanRow& b) { return needs(a) < needs(b); });
  if (needs(*least) <= *report.limit_bytes) return;
  report.advice_for = least->strategy;
  report.advice = advise(report.model.units, report.model.make_step, least->request, *report.limit_bytes);
}

std::string plan_text(const PlanReport& report) {
  std::string text = heading(report);
  text += fmt::format("per rank, at the peak of a step's {}\n\n{:<{}}",
                      report.request.options.on_gpu ? "GPU memory, with the host memory beside it" : "memory",
                      "strategy", name_width(report));
  for (const char* column : kColumns) text += fmt::format("{:>{}}", column, kWidth);
  text += report.limit_bytes ? "            when\n" : "  when\n";
  for (const PlanRow& row : report.rows) text += row_text(report, row);
  text += fmt::format("while a checkpoint is written, --save_mode async takes {} more{}\n",
                      human_bytes(checkpoint_copy_bytes(report)),
                      report.request.options.on_gpu ? ", on the GPU if that much is free, else on the host" : "");
  if (!report.left_out.empty()) {
    text += fmt::format("left out, because these settings do not allow them: {}\n", join(report.left_out, ", "));
  }
  if (report.limit_bytes) text += verdict(report);
  return text;
}

Json plan_json(const PlanReport& report) {
  const MemoryPlanOptions& options = report.request.options;
  Json json{{"model", report.model.name},
            {"num_parameters", num_parameters(report.model)},
            {"num_units", report.model.units.size()},
            {"ranks", options.num_ranks},
            {"dtype", type_name(options.types.compute)},
            {"optimizer", report.optimizer},
            {report.model.counts + "s", report.request.shape.num_tokens},
            {"gradient_accumulation_steps", options.num_micro_steps},
            {"gradient_checkpointing", options.checkpoints_activations},
            {"checkpoint_copy", checkpoint_copy_bytes(report)},
            {"rows", Json::array()}};
  for (const PlanRow& row : report.rows) {
    Json one{{"strategy", row.strategy}};
    one.update(plan_fields(row.plan));
    if (report.limit_bytes) one["fits"] = fits(report, row);
    json["rows"].push_back(std::move(one));
  }
  if (!report.limit_bytes) return json;
  json["memory"] = *report.limit_bytes;
  json["advice"] = Json::array();
  for (const MemoryAdvice& advice : report.advice) {
    Json one{{"strategy", report.advice_for}, {"change", advice.change}};
    one.update(plan_fields(advice.plan));
    json["advice"].push_back(std::move(one));
  }
  return json;
}

}  // namespace tessera
