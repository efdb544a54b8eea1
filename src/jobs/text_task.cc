#include "jobs/text_task.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "data/loading/sampler.h"
#include "jobs/jobs.h"
#include "model/run_modes.h"
#include "tessera/ignored_target.h"

namespace tessera {
namespace {

PackedBatch on_device(PackedBatch batch, at::Device device) {
  for (at::Tensor* tensor : {&batch.input_ids, &batch.positions, &batch.targets, &batch.counted, &batch.cu_seqlens}) {
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  }
  return batch;
}

Sampler training_sampler(const TrainSettings& settings, std::int64_t num_rows, int rank, int num_ranks,
                         const DataPosition& begin) {
  Sampler sampler({.num_rows = num_rows,
                   .rank = rank,
                   .num_ranks = num_ranks,
                   .order = settings.data.shuffle ? Order::kShuffled : Order::kSequential,
                   .seed = static_cast<std::uint64_t>(settings.loop.data_seed),
                   .tail = settings.data.drop_last ? Tail::kDrop : Tail::kRepeat,
                   .share = Share::kBatches,
                   .batch_size = settings.loop.batch_size});
  sampler.start_epoch(begin.epoch, begin.num_taken);
  return sampler;
}

}  // namespace

std::vector<std::int64_t> TextEvaluation::rows_of(std::int64_t batch) const {
  const std::int64_t begin = batch * batch_size_;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(batch_size_, rows_.size() - begin)));
  std::iota(rows.begin(), rows.end(), begin);
  return rows;
}

TrainTask::Totals TextEvaluation::evaluate(UnitRunner& runner,
                                           const std::function<void(std::int64_t, std::int64_t)>& after_batch) const {
  TrainTask::Totals totals;
  totals.sums.assign(static_cast<std::size_t>(num_batches()), 0.0);
  totals.num_batches = (num_batches() + world_.size() - 1) / world_.size();  // rank 0's, which has the most
  std::vector<at::Tensor> losses;  // on the device until the end: reading one waits for it
  for (std::int64_t turn = 0; turn < totals.num_batches; ++turn) {
    const std::int64_t batch = turn * world_.size() + world_.rank();
    if (batch < num_batches()) {
      const PackedBatch packed = rows_.pack(rows_of(batch), PackOptions::of(world_.device()));
      losses.push_back(model_.loss(on_device(packed, world_.device()), runner).sum);
    } else {
      pass_idly(model_, runner, world_.device());
    }
    if (after_batch) after_batch(turn + 1, totals.num_batches);
  }
  if (losses.empty()) return totals;
  const at::Tensor host = at::stack(losses).to(at::kCPU, at::kDouble);
  for (std::size_t turn = 0; turn < losses.size(); ++turn) {
    const std::size_t batch = turn * static_cast<std::size_t>(world_.size()) + static_cast<std::size_t>(world_.rank());
    totals.sums[batch] = host.const_data_ptr<double>()[turn];
  }
  return totals;
}

LogRecord TextEvaluation::metrics(const std::vector<double>& sums) const {
  std::int64_t num_counted = 0;
  for (std::int64_t row = 0; row < rows_.size(); ++row) {
    num_counted += rows_.num_counted(row);
  }
  if (num_counted == 0) {
    throw UsageError("no token of the evaluation rows counts for the loss: see --label_mode");
  }
  double sum = 0;
  for (const double of_batch : sums) sum += of_batch;
  const double loss = sum / static_cast<double>(num_counted);
  LogRecord record{{"eval_loss", loss}};
  if (reports_perplexity_) record.set("eval_perplexity", std::exp(loss));
  return record;
}

void check_rows(const TokenRows& tokens, const LanguageModel& model, const std::string& what) {
  const auto check = [&](std::int64_t row, std::int32_t id, const char* kind) {
    if (id >= 0 && id < model.vocab_size()) return;
    throw UsageError(
        fmt::format("{}, row {}: {} {} is beyond the model's vocabulary of {}: tokenizer and model do not match", what,
                    row, kind, id, model.vocab_size()));
  };
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    const std::int64_t length = std::ssize(tokens.ids(row));
    if (const auto positions = model.max_positions(); positions && length > *positions) {
      throw UsageError(fmt::format("{}, row {}: {} tokens, but the model has positions for {}: give --max_length {}",
                                   what, row, length, *positions, *positions));
    }
    for (const std::int32_t id : tokens.ids(row)) check(row, id, "token");
    for (const std::int32_t id : tokens.targets(row)) {
      if (id != kIgnoredTarget) check(row, id, "label");
    }
  }
}

TextTask::TextTask(std::shared_ptr<LanguageModel> model, const TextRows& training, const TextRows* evaluation,
                   const TrainSettings& settings, const World& world)
    : model_(std::move(model)), training_(training), settings_(settings), world_(world) {
  if (evaluation != nullptr)
    evaluation_.emplace(*model_, *evaluation, world, settings.loop.eval_batch_size,
                        settings.evaluation.reports_perplexity);
  if (training_.size() < world.size()) {
    throw UsageError(fmt::format("{} training rows for {} ranks: every rank needs at least one; start fewer ranks",
                                 training_.size(), world.size()));
  }
  for (std::int64_t row = 0; row < training_.size(); ++row) counted_of_row_.push_back(training_.num_counted(row));
  if (num_batches() == 0) {
    throw UsageError(
        fmt::format("{} training rows do not fill a batch of {} rows on each of {} ranks, and --dataloader_drop_last "
                    "drops partial batches: use a smaller batch",
                    training_.size(), settings.loop.batch_size, world.size()));
  }
}

std::int64_t TextTask::num_batches_after(std::int64_t num_taken) const {
  const std::int64_t batch_size = settings_.loop.batch_size;
  const DataPosition begin{0, num_taken};
  return (training_sampler(settings_, training_.size(), world_.rank(), world_.size(), begin).size() + batch_size - 1) /
         batch_size;
}

TextTask::Batches TextTask::passes_of(const DataPosition& begin, int rank) const {
  const Batches batches =
      training_sampler(settings_, training_.size(), rank, world_.size(), begin).batches(settings_.loop.batch_size);
  Batches passes(batches.empty() ? 0 : static_cast<std::size_t>(pass_of(std::ssize(batches) - 1) + 1));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    auto& pass = passes[static_cast<std::size_t>(pass_of(static_cast<std::int64_t>(i)))];
    pass.insert(pass.end(), batches[i].begin(), batches[i].end());
  }
  return passes;
}

void TextTask::start_epoch(const DataPosition& begin) {
  loader_.reset();
  passes_ = passes_of(begin, world_.rank());
  counted_of_pass_.assign(passes_.size(), 0);
  for (int rank = 0; rank < world_.size(); ++rank) {
    const Batches passes = rank == world_.rank() ? passes_ : passes_of(begin, rank);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      for (const std::int64_t row : passes[i]) counted_of_pass_[i] += counted_of_row_[static_cast<std::size_t>(row)];
    }
  }
  begin_ = begin;
}

TrainTask::UpdateShape TextTask::begin_update(const Update& update) {
  const DataPosition begin{update.epoch, update.num_taken};
  if (begin_ != begin) start_epoch(begin);
  const std::int64_t first = pass_of(update.first_batch),
                     end = pass_of(update.first_batch + update.num_batches - 1) + 1;
  if (!loader_ || loader_->position() != first) {
    loader_.reset();
    const LoopSettings& loop = settings_.loop;
    const PrefetchOptions loading =
        loader_options(settings_.data, world_.device(),
                       std::max(loop.batch_size, loop.eval_batch_size) * settings_.data.max_length * 8);
    // `new` takes the function's result directly: a loader cannot be moved.
    loader_.reset(
        new PrefetchLoader<PackedBatch>(training_.loader(passes_, first, loading, PackOptions::of(world_.device()))));
  }
  UpdateShape shape{end - first, 0};
  for (std::int64_t i = first; i < end; ++i) shape.num_counted += counted_of_pass_[static_cast<std::size_t>(i)];
  return shape;
}

void TextTask::load() {
  std::optional<PackedBatch> batch = loader_->next();
  if (!batch) throw Error("the epoch has no further batch");
  loaded_ = on_device(std::move(*batch), world_.device());
}

at::Tensor TextTask::loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) {
  const std::optional<PackedBatch> batch = std::exchange(loaded_, std::nullopt);
  model_->set_dropout_seed(seed);
  return model_->loss(*batch, runner, {.gradient_scale = gradient_scale, .scale_is_exact = true}).sum;
}

TrainTask::Totals TextTask::evaluate(UnitRunner& runner,
                                     const std::function<void(std::int64_t, std::int64_t)>& after_batch) {
  return evaluation_->evaluate(runner, after_batch);
}

LogRecord TextTask::metrics(const std::vector<double>& sums) const {
  return evaluation_->metrics(sums);
}

}  // namespace tessera
