// An image classifier: the loss of training batches, its accuracy, and an epoch's line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/log_record.h"
#include "data/images/image_dataset.h"
#include "data/loading/prefetch_loader.h"
#include "listeners/console.h"
#include "model/resnet.h"
#include "parallel/offload.h"
#include "settings/train_settings.h"
#include "tessera/world.h"
#include "train/task.h"
#include "train/trainer.h"

namespace tessera {

// The cross entropy summed over the images, in float32 whatever their type, with gradient. Adds loss, correct answers
// and number of images to `sums`, [3] double on the device; nothing waits for the device.
at::Tensor image_loss(ResNet50& model, const at::Tensor& images_BCHW, const at::Tensor& labels_B, UnitRunner& runner,
                      at::Tensor& sums);

// The order of the images is that of torch's DistributedSampler: one permutation for all ranks by data seed and epoch,
// of which a rank gets every num_ranks-th. A remainder between the ranks is dropped, or filled up with the first
// images; the last batch may be short. Evaluation sees every image once, on one rank.
class ImageTask : public TrainTask {
 public:
  // `evaluation` may be null; all but the model must outlive the task. Throws UsageError if a rank would have no batch,
  // if batch norm cannot use the last one, or if a label is outside the model's classes.
  ImageTask(std::shared_ptr<ResNet50> model, const ImageDataset& training, const ImageDataset* evaluation,
            const TrainSettings& settings, World& world);

  UnitModel& model() override { return *model_; }
  std::int64_t num_rows() const override { return training_.size(); }
  std::int64_t num_batches_after(std::int64_t num_taken) const override;
  std::int64_t num_eval_rows() const override { return evaluation_ == nullptr ? 0 : evaluation_->size(); }

  UpdateShape begin_update(const Update& update) override;
  void load() override;
  at::Tensor loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) override;
  // Sums: loss, correct answers, images.
  Totals evaluate(UnitRunner& runner, const std::function<void(std::int64_t, std::int64_t)>& after_batch) override;
  // eval_loss, and eval_accuracy from 0 to 1.
  LogRecord metrics(const std::vector<double>& sums) const override;

  std::int64_t num_ahead() const { return loading_.num_ahead; }  // batches that are decoded beforehand
  // From now on prints each epoch's line and reports its metrics. All must outlive the task's last epoch.
  void report_epochs(Trainer& trainer, Console& console, Listeners& listeners);

 private:
  using Batches = std::vector<std::vector<std::int64_t>>;

  Batches batches_of(const DataPosition& begin) const;
  PrefetchLoader<ImageBatch> loader_of(const ImageDataset& images, const Batches& batches, std::int64_t epoch,
                                       std::int64_t begin) const;
  // As the loader made it, copied; then as the model takes it.
  ImageBatch copied(const ImageBatch& loaded) const;
  ImageBatch prepared(const ImageBatch& copied);

  std::shared_ptr<ResNet50> model_;
  const ImageDataset& training_;
  const ImageDataset* evaluation_;
  const TrainSettings& settings_;
  World& world_;
  PrefetchOptions loading_;
  HostLink link_;

  // From an epoch's first image, or from where a run resumed.
  struct Epoch {
    DataPosition begin;
    Batches batches;  // this rank's images from there
    std::unique_ptr<PrefetchLoader<ImageBatch>> loader;
    std::int64_t position;  // the next batch to train on
    // On a GPU the next batch is copied during a backward pass, if it has been made by then.
    ImageBatch ahead = {};  // undefined: none
    Transfer ahead_arrives = {};
  };
  void copy_ahead(Epoch& epoch) const;
  void choose_kernels(std::int64_t num_images, const Batches& batches) const;
  Epoch open_epoch(const DataPosition& begin, std::int64_t first_batch) const;

  std::optional<Epoch> epoch_, next_epoch_;  // the next one is opened when this one's last batch is loaded
  std::optional<DataPosition> after_epoch_;  // where the next one begins; none: not known yet, or the run ends
  std::optional<ImageBatch> loaded_;         // of the next pass, on the device
  at::Tensor pixels_;                        // of the last batch on a CPU: the next one takes its memory
  at::Tensor sums_;                          // [3] double on the device: loss, correct answers, images; read on demand
};

// What a run on images prints for each epoch.
struct EpochResult {
  std::int64_t epoch = 0;  // 1 is the first
  std::int64_t num_epochs = 0;
  double learning_rate = 0;
  double train_loss = 0, val_loss = 0;
  double train_accuracy = 0, val_accuracy = 0;  // percent
  double images_per_second = 0;
};

// Epoch [3/3] LR: 0.001000 | Loss (train, val): 5.149, 5.664 | Accuracy (train, val): 2.16%, 0.98% | Throughput: 704.9
// img/s
std::string format_epoch_line(const EpochResult& result);
// The same under the names that reports use: Loss/train, Accuracy/val, Throughput/images_per_sec, LR.
LogRecord epoch_metrics(const EpochResult& result);

}  // namespace tessera
