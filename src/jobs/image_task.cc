#include "jobs/image_task.h"

#include <ATen/Context.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/host.h"
#include "data/loading/sampler.h"
#include "model/run_modes.h"

namespace tessera {
namespace {

SamplerOptions training_order(const ImageTaskOptions& options, std::int64_t num_images) {
  return {.num_rows = num_images,
          .rank = options.rank,
          .num_ranks = options.num_ranks,
          .order = options.shuffles ? Order::kShuffled : Order::kSequential,
          .seed = options.data_seed,
          .tail = options.drops_tail ? Tail::kDrop : Tail::kRepeat};
}

SamplerOptions evaluation_order(const ImageTaskOptions& options, std::int64_t num_images, int rank) {
  return {.num_rows = num_images,
          .rank = rank,
          .num_ranks = options.num_ranks,
          .order = Order::kSequential,
          .tail = Tail::kUneven};
}

void check_labels(const ImageDataset& images, std::int64_t num_classes) {
  for (std::int64_t i = 0; i < images.size(); ++i) {
    const std::int64_t label = images.label(i);
    if (label >= 0 && label < num_classes) continue;
    const ImageFolder& folder = images.folder();
    throw UsageError(fmt::format("{}: its class, {}, has number {}, outside the model's {} classes (0 to {})",
                                 folder.path_of(static_cast<std::size_t>(i)).string(),
                                 folder.classes.at(static_cast<std::size_t>(label)), label, num_classes,
                                 num_classes - 1));
  }
}

// The last blocks see 1/32 of the side: of one image of 32 pixels that is one value per channel, of which batch norm
// would compute a deviation of 0/0. torch refuses it, too.
void check_last_batch(std::int64_t num_images, std::int64_t image_size) {
  if (num_images > 1 || image_size > 32) return;
  throw UsageError(
      fmt::format("the last batch of an epoch has one image per rank, too few for batch norm at --image_size {}: use "
                  "another --batch_size, or --dataloader_drop_last",
                  image_size));
}

at::Tensor no_sums(at::Device device) {
  return at::zeros({3}, at::dtype(at::kDouble).device(device));
}

std::vector<double> read(const at::Tensor& sums) {
  const at::Tensor host = sums.cpu();
  const double* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

}  // namespace

at::Tensor image_loss(ResNet50& model, const at::Tensor& images_BCHW, const at::Tensor& labels_B, UnitRunner& runner,
                      at::Tensor& sums) {
  const at::Tensor logits = model.forward(images_BCHW, runner).to(at::kFloat);
  const at::Tensor loss = at::cross_entropy_loss(logits, labels_B, /*weight=*/{}, at::Reduction::Sum);
  const at::NoGradGuard no_gradients;
  const at::Tensor right = logits.argmax(1).eq(labels_B).sum().to(at::kDouble);
  const at::Tensor count = at::full({}, static_cast<double>(labels_B.numel()), sums.options());
  sums += at::stack({loss.detach().to(at::kDouble), right, count});
  return loss;
}

ImageTask::ImageTask(std::shared_ptr<ResNet50> model, const ImageDataset& training, const ImageDataset* evaluation,
                     const ImageTaskOptions& options)
    : model_(std::move(model)),
      training_(training),
      evaluation_(evaluation),
      options_(options),
      link_(options.device, /*pins=*/true),
      sums_(no_sums(options.device)) {
  if (training_.size() == 0 || (options_.drops_tail && training_.size() < options_.num_ranks)) {
    throw UsageError(fmt::format("{} training images for {} ranks: every rank needs at least one; start fewer ranks",
                                 training_.size(), options_.num_ranks));
  }
  check_labels(training_, model_->num_classes());
  if (evaluation_ != nullptr) check_labels(*evaluation_, model_->num_classes());
  if (num_batches() == 0) {
    throw UsageError(
        fmt::format("{} training images do not fill a batch of {} on each of {} rank{}, and --dataloader_drop_last "
                    "drops partial batches: use a smaller --batch_size, or turn that off",
                    training_.size(), options_.batch_size, options_.num_ranks, options_.num_ranks == 1 ? "" : "s"));
  }
}

std::int64_t ImageTask::num_batches_after(std::int64_t num_taken) const {
  const Batches batches = batches_of({0, num_taken});
  if (!batches.empty()) check_last_batch(std::ssize(batches.back()), training_.settings().crop.crop_size);
  return std::ssize(batches);
}

ImageTask::Batches ImageTask::batches_of(const DataPosition& begin) const {
  Sampler sampler(training_order(options_, training_.size()));
  sampler.start_epoch(begin.epoch, begin.num_taken);
  Batches batches = sampler.batches(options_.batch_size);
  const bool last_is_short = !batches.empty() && std::ssize(batches.back()) < options_.batch_size;
  if (options_.drops_short_batch && last_is_short) batches.pop_back();
  return batches;
}

// For a GPU from page-locked memory: such a copy does not block.
PrefetchLoader<ImageBatch> ImageTask::loader_of(const ImageDataset& images, const Batches& batches, std::int64_t epoch,
                                                std::int64_t begin) const {
  const bool is_cuda = options_.device.is_cuda();
  const auto make = [&images, batches, epoch, is_cuda](std::int64_t number) {
    const auto& indices = batches[static_cast<std::size_t>(number)];
    ImageBatch batch = load_images(images, indices, static_cast<std::uint32_t>(epoch));
    if (is_cuda) batch = {batch.images.pin_memory(), batch.labels.pin_memory()};
    return batch;
  };
  return {begin, std::ssize(batches), make, options_.loading};
}

ImageTask::Epoch ImageTask::open_epoch(const DataPosition& begin, std::int64_t first_batch) const {
  Epoch epoch{begin, batches_of(begin), nullptr, first_batch};
  // `new` takes the function's result directly: a loader cannot be moved.
  epoch.loader.reset(new PrefetchLoader<ImageBatch>(loader_of(training_, epoch.batches, begin.epoch, first_batch)));
  return epoch;
}

TrainTask::UpdateShape ImageTask::begin_update(const Update& update) {
  const DataPosition begin{update.epoch, update.num_taken};
  const auto is_at_update = [&](const std::optional<Epoch>& epoch) {
    return epoch && epoch->begin == begin && epoch->position == update.first_batch;
  };
  if (!is_at_update(epoch_)) {
    epoch_.reset();
    epoch_ = is_at_update(next_epoch_) ? std::move(next_epoch_) : open_epoch(begin, update.first_batch);
    next_epoch_.reset();
  }
  after_epoch_.reset();
  if (update.ends_epoch && !update.ends_run) after_epoch_ = update.position_after;
  UpdateShape shape{update.num_batches, 0};
  for (std::int64_t i = 0; i < update.num_batches; ++i) {
    // All ranks have the same number.
    shape.num_counted +=
        std::ssize(epoch_->batches[static_cast<std::size_t>(update.first_batch + i)]) * options_.num_ranks;
  }
  return shape;
}

ImageBatch ImageTask::copied(const ImageBatch& loaded) const {
  return {loaded.images.to(options_.device, /*non_blocking=*/true),
          loaded.labels.to(options_.device, /*non_blocking=*/true)};
}

ImageBatch ImageTask::prepared(const ImageBatch& copied) const {
  return {normalise(copied.images, options_.compute), copied.labels};
}

void ImageTask::load() {
  Epoch& epoch = *epoch_;
  ++epoch.position;
  if (epoch.ahead.images.defined()) {
    epoch.ahead_arrives.order_after();
    loaded_ = prepared(std::exchange(epoch.ahead, {}));
  } else {
    const std::optional<ImageBatch> batch = epoch.loader->next();
    if (!batch) throw Error("the epoch has no further batch");
    loaded_ = prepared(copied(*batch));
  }
  // The next epoch's first batches are decoded during this one's last step and its evaluation.
  const bool is_last = epoch.position == std::ssize(epoch.batches);
  if (is_last && after_epoch_) next_epoch_ = open_epoch(*after_epoch_, 0);
}

// After the work that is queued, forward's, and beside what will be, backward's.
void ImageTask::copy_ahead(Epoch& epoch) const {
  if (!options_.device.is_cuda()) return;
  const std::optional<ImageBatch> batch = epoch.loader->next_if_made();
  if (!batch) return;
  const auto room_for = [&](const at::Tensor& values) {
    return at::empty_like(values, values.options().device(options_.device).pinned_memory(false));
  };
  const ImageBatch there{room_for(batch->images), room_for(batch->labels)};
  link_.to_device(there.labels, batch->labels);
  epoch.ahead_arrives = link_.to_device(there.images, batch->images);  // copies arrive in order
  epoch.ahead = there;
}

// Trying takes seconds for each size: an epoch's last batch, a shorter one, gets what cuDNN expects to be fast.
void ImageTask::choose_kernels(std::int64_t num_images, const Batches& batches) const {
  if (!options_.tries_kernels) return;
  at::globalContext().setBenchmarkCuDNN(num_images == std::ssize(batches.front()));
}

at::Tensor ImageTask::loss_sum(UnitRunner& runner, std::uint64_t /*seed*/, double /*gradient_scale*/) {
  const std::optional<ImageBatch> batch = std::exchange(loaded_, std::nullopt);
  choose_kernels(batch->labels.numel(), epoch_->batches);
  const at::Tensor loss = image_loss(*model_, batch->images, batch->labels, runner, sums_);
  copy_ahead(*epoch_);
  return loss;
}

ImageSums ImageTask::take_training_sums() {
  const std::vector<double> sums = read(std::exchange(sums_, no_sums(options_.device)));
  return {sums[0], sums[1], sums[2]};
}

TrainTask::Totals ImageTask::evaluate(UnitRunner& runner,
                                      const std::function<void(std::int64_t, std::int64_t)>& after_batch) {
  const auto batches_of_rank = [&](int rank) {
    return Sampler(evaluation_order(options_, num_eval_rows(), rank)).batches(options_.eval_batch_size);
  };
  const Batches own = batches_of_rank(options_.rank);
  const std::int64_t num_batches = std::ssize(batches_of_rank(0));  // rank 0 has the most
  PrefetchLoader<ImageBatch> loader = loader_of(*evaluation_, own, /*epoch=*/0, /*begin=*/0);
  at::Tensor sums = no_sums(options_.device);
  for (std::int64_t i = 0; i < num_batches; ++i) {
    if (const std::optional<ImageBatch> batch = loader.next()) {
      const ImageBatch there = prepared(copied(*batch));
      choose_kernels(there.labels.numel(), own);
      image_loss(*model_, there.images, there.labels, runner, sums);
    } else {
      pass_idly(*model_, runner, options_.device);
    }
    after_batch(i + 1, num_batches);
  }
  const bool is_counted = !options_.local_metrics || options_.rank == 0;
  return {is_counted ? read(sums) : std::vector<double>(3, 0.0), num_batches};
}

LogRecord ImageTask::metrics(const std::vector<double>& sums) const {
  const ImageSums all{sums[0], sums[1], sums[2]};
  return {{"eval_loss", all.mean_loss()}, {"eval_accuracy", all.accuracy()}};
}

std::string format_epoch_line(const EpochResult& result) {
  return fmt::format(
      "Epoch [{}/{}] LR: {:.6f} | Loss (train, val): {:.3f}, {:.3f} | Accuracy (train, val): {:.2f}%, {:.2f}% | "
      "Throughput: {:.1f} img/s",
      result.epoch, result.num_epochs, result.learning_rate, result.train_loss, result.val_loss, result.train_accuracy,
      result.val_accuracy, result.images_per_second);
}

LogRecord epoch_metrics(const EpochResult& result) {
  return {{"Loss/train", result.train_loss},
          {"Loss/val", result.val_loss},
          {"Accuracy/train", result.train_accuracy},
          {"Accuracy/val", result.val_accuracy},
          {"Throughput/images_per_sec", result.images_per_second},
          {"LR", result.learning_rate}};
}

EpochReporter::EpochReporter(World& world, ImageTask& task, bool local_metrics, Trainer& trainer, Console& console,
                             Listeners& listeners)
    : world_(world),
      task_(task),
      local_metrics_(local_metrics),
      trainer_(trainer),
      console_(console),
      listeners_(listeners),
      begin_(steady_seconds()),
      first_step_(trainer.progress().step) {}

void EpochReporter::on_epoch(const Update& update) {
  const ImageSums own = task_.take_training_sums();
  const std::vector<std::vector<double>> by_rank = gather_numbers(world_, {own.loss, own.num_right, own.num_images});
  const double now = steady_seconds();
  ImageSums sums;  // of the ranks that the metrics cover
  double num_images = 0;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    num_images += by_rank[rank][2];
    if (local_metrics_ && rank > 0) continue;
    sums.loss += by_rank[rank][0];
    sums.num_right += by_rank[rank][1];
    sums.num_images += by_rank[rank][2];
  }
  EpochResult result;
  result.epoch = update.epoch + 1;
  result.num_epochs = trainer_.plan().num_epochs();
  result.learning_rate = trainer_.used_rate();
  result.train_loss = sums.mean_loss();
  result.train_accuracy = 100 * sums.accuracy();
  result.images_per_second = num_images / (now - std::exchange(begin_, now));
  add_validation(result);
  if (world_.rank() == 0) console_.print_line(format_epoch_line(result));
  listeners_.on_epoch_metrics(trainer_.now(), result.epoch, epoch_metrics(result));
  first_step_ = trainer_.progress().step;
}

void EpochReporter::add_validation(EpochResult& result) const {
  result.val_loss = result.val_accuracy = std::numeric_limits<double>::quiet_NaN();
  const std::vector<LogRecord>& history = trainer_.progress().history;
  for (auto record = history.rbegin(); record != history.rend(); ++record) {
    if (record->number("step").value_or(0) <= static_cast<double>(first_step_)) return;
    const std::optional<double> loss = record->number("eval_loss"), accuracy = record->number("eval_accuracy");
    if (!loss || !accuracy) continue;
    result.val_loss = *loss;
    result.val_accuracy = 100 * *accuracy;
    return;
  }
}

}  // namespace tessera
