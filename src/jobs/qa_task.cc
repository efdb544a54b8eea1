#include "jobs/qa_task.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/loading/text_batches.h"
#include "data/text/qa_sequence.h"
#include "model/run_modes.h"

namespace tessera {
namespace {

PackedBatch on_device(PackedBatch batch, at::Device device) {
  for (at::Tensor* tensor : {&batch.input_ids, &batch.positions, &batch.targets, &batch.counted, &batch.cu_seqlens}) {
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  }
  return batch;
}

std::int64_t num_counted_in(const TokenStore& rows, std::int64_t row) {
  const auto targets = rows.targets(row);
  return std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget);
}

SamplerOptions training_order(const QaTaskOptions& options, std::int64_t num_rows, int rank) {
  return {.num_rows = num_rows,
          .rank = rank,
          .num_ranks = options.num_ranks,
          .order = options.shuffles ? Order::kShuffled : Order::kSequential,
          .seed = options.data_seed,
          .tail = options.drops_last ? Tail::kDrop : Tail::kRepeat,
          .share = Share::kBatches,
          .batch_size = options.batch_size};
}

}  // namespace

std::vector<std::int64_t> QaEvaluation::rows_of(std::int64_t batch) const {
  std::vector<std::int64_t> rows;
  const std::int64_t end = std::min(rows_.size(), (batch + 1) * options_.batch_size);
  for (std::int64_t row = batch * options_.batch_size; row < end; ++row) rows.push_back(row);
  return rows;
}

TrainTask::Totals QaEvaluation::evaluate(UnitRunner& runner,
                                         const std::function<void(std::int64_t, std::int64_t)>& after_batch) const {
  TrainTask::Totals totals;
  totals.sums.assign(static_cast<std::size_t>(num_batches()), 0.0);
  totals.num_batches = (num_batches() + options_.num_ranks - 1) / options_.num_ranks;  // rank 0's, which has the most
  std::vector<at::Tensor> losses;  // on the device until the end: reading one waits for it
  for (std::int64_t turn = 0; turn < totals.num_batches; ++turn) {
    const std::int64_t batch = turn * options_.num_ranks + options_.rank;
    if (batch < num_batches()) {
      losses.push_back(
          model_
              .loss(on_device(pack_rows(rows_, rows_of(batch), PackOptions::of(options_.device)), options_.device),
                    runner)
              .sum);
    } else {
      pass_idly(model_, runner, options_.device);
    }
    if (after_batch) after_batch(turn + 1, totals.num_batches);
  }
  if (losses.empty()) return totals;
  const at::Tensor host = at::stack(losses).to(at::kCPU, at::kDouble);
  for (std::size_t turn = 0; turn < losses.size(); ++turn) {
    const std::size_t batch =
        turn * static_cast<std::size_t>(options_.num_ranks) + static_cast<std::size_t>(options_.rank);
    totals.sums[batch] = host.const_data_ptr<double>()[turn];
  }
  return totals;
}

LogRecord QaEvaluation::metrics(const std::vector<double>& sums) const {
  std::int64_t num_counted = 0;
  for (std::int64_t row = 0; row < rows_.size(); ++row) {
    num_counted += num_counted_in(rows_, row);
  }
  if (num_counted == 0) {
    throw UsageError("no token of the evaluation rows counts for the loss: see --label_mode");
  }
  double sum = 0;
  for (const double of_batch : sums) sum += of_batch;
  return {{"eval_loss", sum / static_cast<double>(num_counted)}};
}

void check_vocabulary(const TokenStore& tokens, const LanguageModel& model, const std::string& what) {
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    for (const std::int32_t id : tokens.ids(row)) {
      if (id >= 0 && id < model.vocab_size()) continue;
      throw UsageError(
          fmt::format("{}, row {}: token {} is beyond the model's vocabulary of {}: tokenizer and model do not match",
                      what, row, id, model.vocab_size()));
    }
    for (const std::int32_t id : tokens.targets(row)) {
      if (id == kIgnoredTarget || (id >= 0 && id < model.vocab_size())) continue;
      throw UsageError(
          fmt::format("{}, row {}: label {} is beyond the model's vocabulary of {}: tokenizer and model do not match",
                      what, row, id, model.vocab_size()));
    }
  }
}

QaTask::QaTask(std::shared_ptr<LanguageModel> model, const TokenStore& training, const TokenStore* evaluation,
               const QaTaskOptions& options)
    : model_(std::move(model)), training_(training), options_(options) {
  if (evaluation != nullptr) {
    evaluation_.emplace(
        *model_, *evaluation,
        QaEvaluationOptions{options_.rank, options_.num_ranks, options_.device, options_.eval_batch_size});
  }
  if (training_.size() < options_.num_ranks) {
    throw UsageError(fmt::format("{} training rows for {} ranks: every rank needs at least one; start fewer ranks",
                                 training_.size(), options_.num_ranks));
  }
  for (std::int64_t row = 0; row < training_.size(); ++row) counted_of_row_.push_back(num_counted_in(training_, row));
  if (num_batches() == 0) {
    throw UsageError(
        fmt::format("{} training rows do not fill a batch of {} rows on each of {} ranks, and --dataloader_drop_last "
                    "drops partial batches: use a smaller batch",
                    training_.size(), options_.batch_size, options_.num_ranks));
  }
}

std::int64_t QaTask::num_batches_after(std::int64_t num_taken) const {
  Sampler sampler(training_order(options_, training_.size(), options_.rank));
  sampler.start_epoch(0, num_taken);
  return (sampler.size() + options_.batch_size - 1) / options_.batch_size;
}

QaTask::Batches QaTask::batches_of(const DataPosition& begin, int rank) const {
  Sampler sampler(training_order(options_, training_.size(), rank));
  sampler.start_epoch(begin.epoch, begin.num_taken);
  return sampler.batches(options_.batch_size);
}

QaTask::Batches QaTask::passes_of(const Batches& batches) const {
  Batches passes(batches.empty() ? 0 : static_cast<std::size_t>(pass_of(std::ssize(batches) - 1) + 1));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    auto& pass = passes[static_cast<std::size_t>(pass_of(static_cast<std::int64_t>(i)))];
    pass.insert(pass.end(), batches[i].begin(), batches[i].end());
  }
  return passes;
}

void QaTask::start_epoch(const DataPosition& begin) {
  loader_.reset();
  passes_ = passes_of(batches_of(begin, options_.rank));
  counted_of_pass_.assign(passes_.size(), 0);
  for (int rank = 0; rank < options_.num_ranks; ++rank) {
    const Batches passes = rank == options_.rank ? passes_ : passes_of(batches_of(begin, rank));
    for (std::size_t i = 0; i < passes.size(); ++i) {
      for (const std::int64_t row : passes[i]) counted_of_pass_[i] += counted_of_row_[static_cast<std::size_t>(row)];
    }
  }
  begin_ = begin;
}

TrainTask::UpdateShape QaTask::begin_update(const Update& update) {
  const DataPosition begin{update.epoch, update.num_taken};
  if (begin_ != begin) start_epoch(begin);
  const std::int64_t first = pass_of(update.first_batch),
                     end = pass_of(update.first_batch + update.num_batches - 1) + 1;
  if (!loader_ || loader_->position() != first) {
    loader_.reset();
    // `new` takes the function's result directly: a loader cannot be moved.
    loader_.reset(new PrefetchLoader<PackedBatch>(
        text_loader(training_, passes_, first, options_.loading, PackOptions::of(options_.device))));
  }
  UpdateShape shape{end - first, 0};
  for (std::int64_t i = first; i < end; ++i) shape.num_counted += counted_of_pass_[static_cast<std::size_t>(i)];
  return shape;
}

void QaTask::load() {
  std::optional<PackedBatch> batch = loader_->next();
  if (!batch) throw Error("the epoch has no further batch");
  loaded_ = on_device(std::move(*batch), options_.device);
}

at::Tensor QaTask::loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) {
  const std::optional<PackedBatch> batch = std::exchange(loaded_, std::nullopt);
  model_->set_dropout_seed(seed);
  return model_->loss(*batch, runner, {.gradient_scale = gradient_scale, .scale_is_exact = true}).sum;
}

TrainTask::Totals QaTask::evaluate(UnitRunner& runner,
                                   const std::function<void(std::int64_t, std::int64_t)>& after_batch) {
  return evaluation_->evaluate(runner, after_batch);
}

LogRecord QaTask::metrics(const std::vector<double>& sums) const {
  return evaluation_->metrics(sums);
}

}  // namespace tessera
