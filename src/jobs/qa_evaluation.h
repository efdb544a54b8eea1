// The loss of a language model on rows of tokens, spread over the ranks; logits are not kept.
//
// Batch b has the same rows however many ranks there are, and goes to rank b modulo their number. The losses are added
// in the order of the batches, so that any number of ranks gives the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/text/token_store.h"
#include "model/language_model.h"
#include "tessera/packed_batch.h"
#include "train/task.h"

namespace tessera {

// Its tensors on the device.
PackedBatch on_device(PackedBatch batch, at::Device device);

struct QaEvaluationOptions {
  int rank = 0, num_ranks = 1;
  at::Device device = at::kCPU;
  std::int64_t batch_size = 1;  // rows per rank
};

class QaEvaluation {
 public:
  // All must outlive it.
  QaEvaluation(LanguageModel& model, const TokenStore& rows, const QaEvaluationOptions& options)
      : model_(model), rows_(rows), options_(options) {}

  std::int64_t num_rows() const { return rows_.size(); }
  // As TrainTask's, in evaluation mode and without gradients. Sums: the loss of each batch, 0 for those of other ranks.
  TrainTask::Totals evaluate(UnitRunner& runner,
                             const std::function<void(std::int64_t, std::int64_t)>& after_batch = {}) const;
  // {'eval_loss': the mean over all counted targets}. Throws UsageError if there are none.
  LogRecord metrics(const std::vector<double>& sums) const;

 private:
  std::int64_t num_batches() const { return (rows_.size() + options_.batch_size - 1) / options_.batch_size; }
  std::vector<std::int64_t> rows_of(std::int64_t batch) const;

  LanguageModel& model_;
  const TokenStore& rows_;
  QaEvaluationOptions options_;
};

}  // namespace tessera
