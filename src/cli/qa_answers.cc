#include "cli/qa_answers.h"

#include <optional>

#include "cli/train_plan.h"
#include "core/log.h"
#include "train/answers.h"

namespace tessera {
namespace {

// Half of what a rank has: the rest is for what it holds already and for the batches.
std::optional<std::int64_t> memory_for_model(const World& world) {
  const std::optional<std::int64_t> memory = memory_of_rank(world);
  return memory ? std::optional(*memory / 2) : std::nullopt;
}

}  // namespace

void announce_generation(World& world, Engine& engine) {
  if (keeps_whole(engine)) return;
  const bool is_whole = can_hold_whole(world, engine, memory_for_model(world));
  if (world.rank() != 0) return;
  log_info("generation: {}", is_whole ? "every rank holds the whole model for the time"
                                      : "the model does not fit whole, each token gathers it block by block");
}

std::vector<std::string> qa_answers(World& world, Engine& engine, const QaModel& model,
                                    const std::vector<QaPrompt>& prompts, std::int64_t max_new_tokens) {
  AnswerOptions options;
  options.max_new_tokens = max_new_tokens;
  options.eos_ids = model.eos_ids;
  options.memory_bytes = memory_for_model(world);
  if (const auto memory = memory_of_rank(world)) options.batch_bytes = *memory / 8;
  return answer(world, engine, *model.model, model.tokenizer, prompts, options);
}

}  // namespace tessera
