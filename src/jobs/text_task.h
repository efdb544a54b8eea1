// A language model on rows of tokens: the loss of training batches, and of evaluation rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/loading/prefetch_loader.h"
#include "data/loading/text_rows.h"
#include "model/language_model.h"
#include "settings/train_settings.h"
#include "tessera/packed_batch.h"
#include "tessera/world.h"
#include "train/task.h"

namespace tessera {

// The loss of a language model on rows of tokens, spread over the ranks; logits are not kept.
//
// Batch b has the same rows however many ranks there are, and goes to rank b modulo their number. The losses are added
// in the order of the batches, so that any number of ranks gives the same bits.
class TextEvaluation {
 public:
  // All must outlive it. `batch_size`: rows per rank.
  TextEvaluation(LanguageModel& model, const TextRows& rows, const World& world, std::int64_t batch_size,
                 bool reports_perplexity = false)
      : model_(model), rows_(rows), world_(world), batch_size_(batch_size), reports_perplexity_(reports_perplexity) {}

  std::int64_t num_rows() const { return rows_.size(); }
  // As TrainTask's, in evaluation mode and without gradients. Sums: the loss of each batch, 0 for those of other ranks.
  TrainTask::Totals evaluate(UnitRunner& runner,
                             const std::function<void(std::int64_t, std::int64_t)>& after_batch = {}) const;
  // {'eval_loss': the mean over all counted targets}, with its exponential where that is asked for. Throws UsageError
  // if there are no such targets.
  LogRecord metrics(const std::vector<double>& sums) const;

 private:
  std::int64_t num_batches() const { return (rows_.size() + batch_size_ - 1) / batch_size_; }
  std::vector<std::int64_t> rows_of(std::int64_t batch) const;

  LanguageModel& model_;
  const TextRows& rows_;
  const World& world_;
  std::int64_t batch_size_;
  bool reports_perplexity_;
};

// Throws UsageError naming the row if a token is outside the model's vocabulary, or the row has more tokens than the
// model has positions. `what` is what messages call the rows: a file's name.
void check_rows(const TokenRows& tokens, const LanguageModel& model, const std::string& what);

// The order of the rows is Hugging Face's: one permutation for all ranks by data seed and epoch, batch i to rank i
// modulo their number. Every rank has all tokens (a mapped file), so it knows what the others count without
// communication.
class TextTask : public TrainTask {
 public:
  // `evaluation` may be null; all but the model must outlive the task. Throws UsageError if there are fewer rows than
  // ranks, or no full batch.
  TextTask(std::shared_ptr<LanguageModel> model, const TextRows& training, const TextRows* evaluation,
           const TrainSettings& settings, const World& world);

  UnitModel& model() override { return *model_; }
  std::int64_t num_rows() const override { return training_.size(); }
  std::int64_t num_batches_after(std::int64_t num_taken) const override;
  std::int64_t num_eval_rows() const override { return evaluation_ ? evaluation_->num_rows() : 0; }

  UpdateShape begin_update(const Update& update) override;
  void load() override;
  at::Tensor loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) override;
  Totals evaluate(UnitRunner& runner, const std::function<void(std::int64_t, std::int64_t)>& after_batch) override;
  LogRecord metrics(const std::vector<double>& sums) const override;

 private:
  using Batches = std::vector<std::vector<std::int64_t>>;

  void start_epoch(const DataPosition& begin);
  std::int64_t pass_of(std::int64_t batch) const {
    const LoopSettings& loop = settings_.loop;
    return loop.merge_accumulation == MergeAccumulation::kOn ? batch / loop.accumulation : batch;
  }
  Batches passes_of(const DataPosition& begin, int rank) const;  // the rows of each pass

  std::shared_ptr<LanguageModel> model_;
  const TextRows& training_;
  const TrainSettings& settings_;
  const World& world_;
  std::optional<TextEvaluation> evaluation_;
  std::vector<std::int64_t> counted_of_row_;

  std::optional<DataPosition> begin_;          // of what follows: an epoch's first row, or where a run resumed
  Batches passes_;                             // this rank's rows of the epoch
  std::vector<std::int64_t> counted_of_pass_;  // over all ranks
  std::unique_ptr<PrefetchLoader<PackedBatch>> loader_;
  std::optional<PackedBatch> loaded_;  // of the next pass
};

}  // namespace tessera
