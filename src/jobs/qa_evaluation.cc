#include "jobs/qa_evaluation.h"

#include <ATen/ops/stack.h>

#include <algorithm>

#include "core/error.h"
#include "data/loading/text_batches.h"
#include "data/text/qa_sequence.h"
#include "model/run_modes.h"

namespace tessera {

PackedBatch on_device(PackedBatch batch, at::Device device) {
  for (at::Tensor* tensor : {&batch.input_ids, &batch.positions, &batch.targets, &batch.counted, &batch.cu_seqlens}) {
    if (tensor->defined()) *tensor = tensor->to(device, /*non_blocking=*/true);
  }
  return batch;
}

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
    const auto targets = rows_.targets(row);
    num_counted += std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget);
  }
  if (num_counted == 0) {
    throw UsageError("no token of the evaluation rows counts for the loss: see --label_mode");
  }
  double sum = 0;
  for (const double of_batch : sums) sum += of_batch;
  return {{"eval_loss", sum / static_cast<double>(num_counted)}};
}

}  // namespace tessera
