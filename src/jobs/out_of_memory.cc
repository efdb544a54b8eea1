#include "jobs/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>

#include "comm/failure.h"
#include "core/log.h"
#include "core/quantity.h"
#include "core/text.h"
#include "jobs/run_plan.h"
#include "monitor/host_info.h"

namespace tessera {
namespace {

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

std::optional<std::int64_t> limit_of(const PlanReport& plan) {
  const std::optional<std::int64_t> space = address_space_bytes();
  if (!space) return plan.limit_bytes;
  return std::min(plan.limit_bytes.value_or(*space), *space);
}

std::string parts_text(const MemoryUse& use) {
  return fmt::format("parameters {}, gradients {}, optimizer {}, in flight {}, activations {}",
                     human_bytes(use.parameters), human_bytes(use.gradients), human_bytes(use.optimizer),
                     human_bytes(use.in_flight), human_bytes(use.activations));
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const std::string what = message_of(error);
  return std::any_of(std::begin(kWordsOfAllocators), std::end(kWordsOfAllocators),
                     [&](const char* words) { return what.find(words) != std::string::npos; });
}

std::string memory_text(const PlanReport& plan) {
  const PlanRow& row = plan.rows.front();
  const std::int64_t needed = row.plan.peak.total();
  std::string text = fmt::format("the memory plan of a step ({}): {} at the peak, in {}: {}", row.strategy,
                                 human_bytes(needed), row.plan.peak_moment, parts_text(row.plan.peak));
  if (row.plan.host.total() > 0) text += fmt::format("; {} of host memory", human_bytes(row.plan.host.total()));
  const std::optional<std::int64_t> limit = limit_of(plan);
  if (limit) text += fmt::format("; this rank can use {}", human_bytes(*limit));
  // If the plan should fit, other processes or memory that it does not know of (libraries, fragmentation) take the
  // rest: advise what needs less.
  constexpr double kClearlyLess = 0.8;
  const auto less = static_cast<std::int64_t>(kClearlyLess * static_cast<double>(needed));
  const bool seemed_to_fit = !limit || needed <= *limit;
  const std::int64_t target = seemed_to_fit ? less : *limit;
  const std::vector<MemoryAdvice> advice = advise(plan.model.units, plan.model.make_step, row.request, target);
  if (advice.empty()) {
    return text +
           "\nno change of batch, checkpointing, strategy, type or offload is enough: use more ranks, or a smaller "
           "model";
  }
  text += seemed_to_fit ? "\nchanges that need clearly less:" : "\nchanges that would fit:";
  for (const MemoryAdvice& each : advice) {
    text += fmt::format("\n  {}: {}", each.change, human_bytes(each.plan.peak.total()));
    if (each.plan.host.total() > 0) text += fmt::format(", and {} of host memory", human_bytes(each.plan.host.total()));
  }
  return text;
}

void check_plan(const World& world, const PlanReport& plan) {
  const MemoryPlan& row = plan.rows.front().plan;
  const int num_here = ranks_of_node(world);
  const double on_host =
      static_cast<double>(row.host.total() + (world.device().is_cpu() ? row.peak.total() : 0)) * num_here;
  const std::optional<std::int64_t> most = read_memory_info().most_bytes();
  if (most && on_host > static_cast<double>(*most)) {
    throw Error(fmt::format("out of memory before the first step: the {} of this host need{} {}, and it has {}; {}",
                            num_here == 1 ? "rank" : fmt::format("{} ranks", num_here), num_here == 1 ? "s" : "",
                            human_bytes(static_cast<std::int64_t>(on_host)), human_bytes(*most), memory_text(plan)),
                ExitStatus::kOutOfMemory);
  }
  const std::optional<std::int64_t> limit = limit_of(plan);
  if (world.rank() != 0 || !limit || plan.rows.front().plan.peak.total() <= *limit) return;
  log_warn("this run may run out of memory: {}", memory_text(plan));
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
