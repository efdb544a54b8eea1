#include "parallel/jobs.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <tuple>

#include "model/families/bloom.h"
#include "model/families/tessera_gpt.h"
#include "model/generation.h"
#include "model/parameters.h"
#include "model/resnet.h"
#include "parallel/small_model.h"
#include "parallel/small_resnet.h"
#include "support/pack_padded.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

constexpr std::int64_t kNumTokens = 24, kNumImages = 12;  // over all ranks, per micro-step
constexpr std::int64_t kVocabulary = 61;

at::Generator generator_of(int step, int micro_step) {
  return at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * step + micro_step));
}

// A rank's part of the global batch: some ranks may get one item more than others.
struct Part {
  int rank, num_ranks;
  at::Tensor of(const at::Tensor& global) const {
    const std::int64_t begin = global.size(0) * rank / num_ranks, end = global.size(0) * (rank + 1) / num_ranks;
    return global.narrow(0, begin, end - begin);
  }
  // Differs per rank: rank 0's values must reach the others.
  std::uint64_t seed() const { return 1 + static_cast<std::uint64_t>(rank); }
};

class OddJob : public TrainedJob {
 public:
  explicit OddJob(Part part) : part_(part), model_(3, part.seed()) {}
  UnitModel& model() override { return model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    const at::Generator generator = generator_of(step, micro_step);
    const at::Tensor ids = part_.of(at::randint(SmallModel::kVocabulary, {kNumTokens}, generator, at::kLong));
    return {model_.loss(ids, (ids * 7 + 3) % SmallModel::kVocabulary, runner), ids.numel()};
  }

 private:
  Part part_;
  SmallModel model_;
};

class TextJob : public TrainedJob {
 public:
  TextJob(Part part, std::shared_ptr<LanguageModel> model) : part_(part), model_(std::move(model)) {
    initialise(*model_, part.seed());
  }
  UnitModel& model() override { return *model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    // A small vocabulary. Lengths and counted labels are always the same, so that libraries need not prepare for new
    // shapes.
    const at::Tensor lengths = at::tensor({3, 6, 2, 5, 4}, at::kLong).unsqueeze(1);
    const at::Tensor ids = at::randint(20, {lengths.size(0), 6}, generator_of(step, micro_step), at::kLong);
    const at::Tensor places = at::arange(6).expand_as(ids), mask = places.lt(lengths);
    const at::Tensor labels = at::where(mask.logical_and(places.ne(3)), ids, kIgnoredTarget);
    const kernels::LossSum loss = model_->loss(pack_padded(part_.of(ids), part_.of(mask), part_.of(labels)), runner);
    return {loss.sum, loss.num_counted};
  }

 private:
  Part part_;
  std::shared_ptr<LanguageModel> model_;
};

class ResNetJob : public TrainedJob {
 public:
  ResNetJob(Part part, bool batch_statistics) : part_(part), model_(part.seed()) { model_.train(batch_statistics); }
  UnitModel& model() override { return model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    const at::Generator generator = generator_of(step, micro_step);
    const at::Tensor classes = at::randint(SmallResNet::kNumClasses, {kNumImages}, generator, at::kLong);
    const at::Tensor images = at::randn({kNumImages, 3, 6, 6}, generator) + classes.view({-1, 1, 1, 1}) * 0.3;
    const at::Tensor own = part_.of(classes);
    const at::Tensor logits = model_.forward(part_.of(images).to(model_.parameters().front().scalar_type()), runner);
    return {at::cross_entropy_loss(logits.to(at::kFloat), own, {}, at::Reduction::Sum), own.numel()};
  }

 private:
  Part part_;
  SmallResNet model_;
};

class ResNet50Job : public TrainedJob {
 public:
  explicit ResNet50Job(Part part) : part_(part), model_(kNumClasses) {
    // Ranks draw from the same generator: only the first draw, made once, is always the same.
    static ResNet50 drawn_once(kNumClasses);
    const at::NoGradGuard no_gradients;
    const auto from = drawn_once.parameters(), to = model_.parameters();
    for (std::size_t i = 0; part.rank == 0 && i < to.size(); ++i) to[i].copy_(from[i]);
  }
  UnitModel& model() override { return model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    const at::Generator generator = generator_of(step, micro_step);
    const at::Tensor classes = part_.of(at::randint(kNumClasses, {4}, generator, at::kLong));
    const at::Tensor images = part_.of(at::randn({4, 3, 48, 48}, generator));
    const at::Tensor logits = model_.forward(images.to(model_.parameters().front().scalar_type()), runner);
    return {at::cross_entropy_loss(logits.to(at::kFloat), classes, {}, at::Reduction::Sum), classes.numel()};
  }

 private:
  static constexpr std::int64_t kNumClasses = 10;
  Part part_;
  ResNet50 model_;
};

Json bloom_config() {
  BloomConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 32;
  config.num_layers = 3;
  config.num_heads = 2;
  config.initializer_range = 0.1;
  return config.to_json();
}

Json gpt_config() {
  GptConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 32;
  config.num_layers = 3;
  config.num_heads = 2;
  config.ff_dim = 48;
  config.dropout = 0;
  config.initializer_range = 0.1;
  return config.to_json();
}

Training adamw() {
  Training how;
  how.optimizer = choose_optimizer("adamw", {.weight_decay = 0.01});
  how.is_exempt_from_decay = [](const std::string& name) { return name.find("bias") != std::string::npos; };
  return how;
}

Training sgd() {
  Training how;
  how.optimizer = choose_optimizer("sgd", {.weight_decay = 1e-4, .momentum = 0.9});
  how.learning_rate = 0.01;
  return how;
}

NamedJob text_job(const std::string& name, const Json& config) {
  return {name,
          [config](int rank, int num_ranks) {
            return std::make_unique<TextJob>(Part{rank, num_ranks}, make_language_model(config));
          },
          adamw()};
}

NamedJob image_job(const std::string& name, bool batch_statistics) {
  return {name,
          [batch_statistics](int rank, int num_ranks) {
            return std::make_unique<ResNetJob>(Part{rank, num_ranks}, batch_statistics);
          },
          sgd()};
}

}  // namespace

NamedJob odd_job() {
  return {"odd", [](int rank, int num_ranks) { return std::make_unique<OddJob>(Part{rank, num_ranks}); }, adamw()};
}

NamedJob bloom_job() {
  return text_job("bloom", bloom_config());
}

NamedJob gpt_job() {
  return text_job("gpt", gpt_config());
}

NamedJob llama_job() {
  return text_job("llama", small_decoder_config("llama"));
}

NamedJob gemma3_job() {
  return text_job("gemma3", small_decoder_config("gemma3_text"));
}

NamedJob resnet_job() {
  return image_job("resnet", true);
}

NamedJob frozen_resnet_job() {
  return image_job("frozen_resnet", false);
}

NamedJob resnet50_job() {
  NamedJob job{"resnet50",
               [](int rank, int num_ranks) {
                 return std::make_unique<ResNet50Job>(Part{rank, num_ranks});
               },
               sgd()};
  job.how.num_steps = 3;
  return job;
}

std::vector<NamedJob> all_jobs() {
  return {odd_job(), bloom_job(), gpt_job(), resnet_job()};
}

std::vector<Row> rows_of_table(int num_ranks) {
  const auto fields = [](const Placement& p) {
    return std::tuple(p.is_for_one_rank, p.parameters.over, p.gradients.over, p.optimizer.over,
                      p.released_after_forward, p.backward_gathers_from);
  };
  std::vector<Row> rows;
  for (const std::string& strategy : strategy_names()) {
    const Placement placement = placement_of(strategy);
    if (placement.is_for_one_rank && num_ranks > 1) continue;
    const bool is_known = std::any_of(rows.begin(), rows.end(),
                                      [&](const Row& row) { return fields(row.placement()) == fields(placement); });
    if (!is_known) rows.push_back({strategy});
  }
  return rows;
}

std::vector<Row> offloaded_rows(int num_ranks) {
  std::vector<Row> rows = rows_of_table(num_ranks);
  for (Row& row : rows) {
    row.offload_parameters = row.placement().parameters.is_split();
    row.offload_optimizer = true;
  }
  return rows;
}

std::vector<std::string> rows_that_use_nodes() {
  std::vector<std::string> names = strategy_names();
  std::erase_if(names, [](const std::string& name) { return !placement_of(name).needs_equal_nodes(); });
  return names;
}

}  // namespace tessera
