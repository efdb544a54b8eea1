#include "jobs/qa_answers.h"

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <optional>

#include "core/log.h"
#include "jobs/answers.h"
#include "jobs/run_plan.h"

namespace tessera {
namespace {

// The memory that a rank can use in addition to its current tensors. None: unknown.
std::optional<std::int64_t> memory_left(const World& world) {
  const std::optional<std::int64_t> memory = memory_of_rank(world);
  if (!memory || !world.device().is_cuda()) return memory;  // on a host it is already what is left
  const auto stats = at::accelerator::getDeviceStats(world.device().index());
  constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);
  return std::max<std::int64_t>(0, *memory - stats.allocated_bytes[kAll].current);
}

// Half for the whole model, half of the rest for a batch.
std::optional<std::int64_t> memory_for_model(const World& world) {
  const std::optional<std::int64_t> memory = memory_left(world);
  return memory ? std::optional(*memory / 2) : std::nullopt;
}

}  // namespace

void announce_generation(World& world, Engine& engine) {
  if (keeps_whole(engine)) return;
  const bool is_whole = can_hold_whole(world, engine, memory_for_model(world));
  if (world.rank() != 0) return;
  log_info("generation: {}", is_whole ? "every rank holds the whole model meanwhile"
                                      : "the whole model does not fit, so each token gathers it block by block");
}

std::vector<std::string> qa_answers(World& world, Engine& engine, const QaModel& model,
                                    const std::vector<QaPrompt>& prompts, std::int64_t max_new_tokens) {
  AnswerOptions options;
  options.max_new_tokens = max_new_tokens;
  options.eos_ids = model.eos_ids;
  options.memory_bytes = memory_for_model(world);
  if (const auto memory = memory_left(world)) options.batch_bytes = *memory / 4;
  return answer(world, engine, *model.model, model.tokenizer, prompts, options);
}

}  // namespace tessera
