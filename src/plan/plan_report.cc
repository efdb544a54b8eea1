#include "plan/plan_report.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <numeric>

#include "comm/failure.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

struct Part {
  const char *label, *key;  // in the table, in JSON
  std::int64_t MemoryUse::*bytes;
};
constexpr Part kParts[] = {{"parameters", "parameters", &MemoryUse::parameters},
                           {"gradients", "gradients", &MemoryUse::gradients},
                           {"optimizer", "optimizer", &MemoryUse::optimizer},
                           {"in flight", "in_flight", &MemoryUse::in_flight},
                           {"activations", "activations", &MemoryUse::activations}};
constexpr std::size_t kWidth = 12;  // of a column

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
  for (const Part& part : kParts) text += fmt::format("{:>{}}", human_bytes(peak.*part.bytes), kWidth);
  text += fmt::format("{:>{}}{:>{}}", human_bytes(peak.total()), kWidth, human_bytes(row.plan.host.total()), kWidth);
  if (report.limit_bytes) text += fits(report, row) ? "  fits    " : "  too much";
  return text + fmt::format("  {}\n", row.plan.peak_moment);
}

// ", and 3 GiB of host memory"
std::string host_text(const MemoryPlan& plan) {
  return plan.host.total() > 0 ? fmt::format(", and {} of host memory", human_bytes(plan.host.total())) : "";
}

std::string advice_text(const std::vector<MemoryAdvice>& advice) {
  std::string text;
  for (const MemoryAdvice& each : advice) {
    text += fmt::format("\n  {}: {}{}", each.change, human_bytes(each.plan.peak.total()), host_text(each.plan));
  }
  return text;
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
  return text + fmt::format("; {} fits with{}\n", report.advice_for, advice_text(report.advice));
}

// What a rank copies of the state to write it while training goes on: ranks share it equally under every strategy.
std::int64_t checkpoint_copy_bytes(const PlanReport& report) {
  const MemoryPlanOptions& options = report.request.options;
  const auto state =
      static_cast<std::int64_t>(sizeof(float)) * num_parameters(report.model) * (1 + options.num_moments);
  return (state + options.num_ranks - 1) / options.num_ranks;
}

Json use_json(const MemoryUse& use) {
  Json json;
  for (const Part& part : kParts) json[part.key] = use.*part.bytes;
  json["total"] = use.total();
  return json;
}

Json plan_fields(const MemoryPlan& plan) {
  return {{"device", use_json(plan.peak)},
          {"moment", plan.peak_moment},
          {"between_steps", use_json(plan.resident)},
          {"host", use_json(plan.host)}};
}

constexpr const char* kWordsOfAllocators[] = {
    "you tried to allocate",   // c10's for the CPU
    "out of memory",           // CUDA's caching allocator, and the driver's own
    "Cannot allocate memory",  // the system's
    "bad_alloc",
};

// "rank 0, forward of unit h.2: cannot allocate 23.1 MiB" instead of c10's source line and number of bytes.
std::string without_source_line(const std::string& what) {
  constexpr std::string_view kBegin = "[enforce fail", kAsked = "you tried to allocate ";
  const std::size_t begin = what.find(kBegin), asked = what.find(kAsked);
  if (begin == std::string::npos || asked == std::string::npos || asked < begin) return what;
  const std::string number = what.substr(asked + kAsked.size());
  const auto num_bytes = parse_integer(number.substr(0, number.find(' ')));
  return num_bytes ? fmt::format("{}cannot allocate {}", what.substr(0, begin), human_bytes(*num_bytes)) : what;
}

// The limit of the address space, if one is set (ulimit -v).
std::optional<std::int64_t> address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::string parts_text(const MemoryUse& use) {
  std::vector<std::string> parts;
  for (const Part& part : kParts) parts.push_back(fmt::format("{} {}", part.label, human_bytes(use.*part.bytes)));
  return join(parts, ", ");
}

}  // namespace

void add_advice(PlanReport& report) {
  if (!report.limit_bytes || report.rows.empty()) return;
  const auto needs = [](const PlanRow& row) { return row.plan.peak.total(); };
  const auto least = std::min_element(report.rows.begin(), report.rows.end(),
                                      [&](const PlanRow& a, const PlanRow& b) { return needs(a) < needs(b); });
  if (needs(*least) <= *report.limit_bytes) return;
  report.advice_for = least->strategy;
  report.advice = advise(report.model, least->request, *report.limit_bytes);
}

std::string plan_text(const PlanReport& report) {
  std::string text = heading(report);
  text += fmt::format("per rank, at the peak of a step's {}\n\n{:<{}}",
                      report.request.options.on_gpu ? "GPU memory, with the host memory beside it" : "memory",
                      "strategy", name_width(report));
  for (const Part& part : kParts) text += fmt::format("{:>{}}", part.label, kWidth);
  text += fmt::format("{:>{}}{:>{}}", "total", kWidth, "host", kWidth);
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

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string what = message_of(error);
  return std::any_of(std::begin(kWordsOfAllocators), std::end(kWordsOfAllocators),
                     [&](const char* words) { return what.find(words) != std::string::npos; });
}

std::optional<std::int64_t> usable_bytes(const PlanReport& plan) {
  const std::optional<std::int64_t> space = address_space_bytes();
  if (!space) return plan.limit_bytes;
  return std::min(plan.limit_bytes.value_or(*space), *space);
}

std::string memory_text(const PlanReport& plan) {
  const PlanRow& row = plan.rows.front();
  const std::int64_t needed = row.plan.peak.total();
  std::string text = fmt::format("the memory plan of a step ({}): {} at the peak, in {}: {}", row.strategy,
                                 human_bytes(needed), row.plan.peak_moment, parts_text(row.plan.peak));
  if (row.plan.host.total() > 0) text += fmt::format("; {} of host memory", human_bytes(row.plan.host.total()));
  const std::optional<std::int64_t> limit = usable_bytes(plan);
  if (limit) text += fmt::format("; this rank can use {}", human_bytes(*limit));
  // If the plan should fit, other processes or memory that it does not know of (libraries, fragmentation) take the
  // rest: advise what needs less.
  constexpr double kClearlyLess = 0.8;
  const auto less = static_cast<std::int64_t>(kClearlyLess * static_cast<double>(needed));
  const bool seemed_to_fit = !limit || needed <= *limit;
  const std::int64_t target = seemed_to_fit ? less : *limit;
  const std::vector<MemoryAdvice> advice = advise(plan.model, row.request, target);
  if (advice.empty()) {
    return text +
           "\nno change of batch, checkpointing, strategy, type or offload is enough: use more ranks, or a smaller "
           "model";
  }
  return text + (seemed_to_fit ? "\nchanges that need clearly less:" : "\nchanges that would fit:") +
         advice_text(advice);
}

std::string message_without_memory(const std::exception& error) {
  const bool has_phase = dynamic_cast<const MemoryError*>(&error) != nullptr;
  return (has_phase ? "" : "before the first step: ") + without_source_line(message_of(error));
}

Error out_of_memory_error(const std::string& what, const std::function<PlanReport()>& plan) {
  std::string text = "out of memory: " + what;
  try {
    text += "\n" + memory_text(plan());
  } catch (const std::exception& error) {
    text += fmt::format(" (and the memory plan could not be made: {})", message_of(error));
  }
  return Error(text, ExitStatus::kOutOfMemory);
}

}  // namespace tessera
