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

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/host.h"
#include "data/loading/sampler.h"
#include "jobs/jobs.h"
#include "model/run_modes.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

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

at::Tensor no_sums(at::Device device) {
  return at::zeros({3}, at::dtype(at::kDouble).device(device));
}

std::vector<double> read(const at::Tensor& sums) {
  const at::Tensor host = sums.cpu();
  const double* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

// From the last evaluation after that step; without one there is no number.
void add_validation(const std::vector<LogRecord>& history, std::int64_t first_step, EpochResult& result) {
  result.val_loss = result.val_accuracy = std::numeric_limits<double>::quiet_NaN();
  for (auto record = history.rbegin(); record != history.rend(); ++record) {
    if (record->number("step").value_or(0) <= static_cast<double>(first_step)) return;
    const std::optional<double> loss = record->number("eval_loss"), accuracy = record->number("eval_accuracy");
    if (!loss || !accuracy) continue;
    result.val_loss = *loss;
    result.val_accuracy = 100 * *accuracy;
    return;
  }
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
                     const TrainSettings& settings, World& world)
    : model_(std::move(model)),
      training_(training),
      evaluation_(evaluation),
      settings_(settings),
      world_(world),
      loading_(loader_options(settings.data, world.device(),
                              std::max(settings.loop.batch_size, settings.loop.eval_batch_size) * 3 *
                                  settings.data.image_size * settings.data.image_size)),
      link_(world.device(), /*pins=*/true),
      sums_(no_sums(world.device())) {
  if (training_.size() == 0 || (settings.data.sampler_drop_last && training_.size() < world.size())) {
    throw UsageError(fmt::format("{} training images for {} ranks: every rank needs at least one; start fewer ranks",
                                 training_.size(), world.size()));
  }
  check_labels(training_, model_->num_classes());
  if (evaluation_ != nullptr) check_labels(*evaluation_, model_->num_classes());
  if (num_batches() == 0) {
    throw UsageError(
        fmt::format("{} training images do not fill a batch of {} on each of {} rank{}, and --dataloader_drop_last "
                    "drops partial batches: use a smaller --batch_size, or turn that off",
                    training_.size(), settings.loop.batch_size, world.size(), world.size() == 1 ? "" : "s"));
  }
}

std::int64_t ImageTask::num_batches_after(std::int64_t num_taken) const {
  const Batches batches = batches_of({0, num_taken});
  // The last blocks see 1/32 of the side: of one image of 32 pixels that is one value per channel, of which batch norm
  // would compute a deviation of 0/0. torch refuses it, too.
  const int image_size = training_.settings().crop.crop_size;
  if (!batches.empty() && batches.back().size() == 1 && image_size <= 32) {
    throw UsageError(
        fmt::format("the last batch of an epoch has one image per rank, too few for batch norm at --image_size {}: use "
                    "another --batch_size, or --dataloader_drop_last",
                    image_size));
  }
  return std::ssize(batches);
}

ImageTask::Batches ImageTask::batches_of(const DataPosition& begin) const {
  const DataSettings& data = settings_.data;
  const std::int64_t batch_size = settings_.loop.batch_size;
  Sampler sampler({.num_rows = training_.size(),
                   .rank = world_.rank(),
                   .num_ranks = world_.size(),
                   .order = data.shuffle ? Order::kShuffled : Order::kSequential,
                   .seed = static_cast<std::uint64_t>(settings_.loop.data_seed),
                   .tail = data.sampler_drop_last ? Tail::kDrop : Tail::kRepeat});
  sampler.start_epoch(begin.epoch, begin.num_taken);
  Batches batches = sampler.batches(batch_size);
  const bool last_is_short = !batches.empty() && std::ssize(batches.back()) < batch_size;
  if (data.drop_last && last_is_short) batches.pop_back();
  return batches;
}

// For a GPU from page-locked memory: such a copy does not block.
PrefetchLoader<ImageBatch> ImageTask::loader_of(const ImageDataset& images, const Batches& batches, std::int64_t epoch,
                                                std::int64_t begin) const {
  const bool is_cuda = world_.device().is_cuda();
  const auto make = [&images, batches, epoch, is_cuda](std::int64_t number) {
    const auto& indices = batches[static_cast<std::size_t>(number)];
    ImageBatch batch = load_images(images, indices, static_cast<std::uint32_t>(epoch));
    if (is_cuda) batch = {batch.images.pin_memory(), batch.labels.pin_memory()};
    return batch;
  };
  return {begin, std::ssize(batches), make, loading_};
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
    shape.num_counted += std::ssize(epoch_->batches[static_cast<std::size_t>(update.first_batch + i)]) * world_.size();
  }
  return shape;
}

ImageBatch ImageTask::copied(const ImageBatch& loaded) const {
  return {loaded.images.to(world_.device(), /*non_blocking=*/true),
          loaded.labels.to(world_.device(), /*non_blocking=*/true)};
}

ImageBatch ImageTask::prepared(const ImageBatch& copied) {
  const at::ScalarType type = scalar_type_of(settings_.precision.compute);  // parameters are float32
  at::Tensor images = normalise(copied.images, type, std::move(pixels_));
  if (world_.device().is_cpu()) pixels_ = images;
  return {std::move(images), copied.labels};
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
  if (!world_.device().is_cuda()) return;
  const std::optional<ImageBatch> batch = epoch.loader->next_if_made();
  if (!batch) return;
  const auto room_for = [&](const at::Tensor& values) {
    return at::empty_like(values, values.options().device(world_.device()).pinned_memory(false));
  };
  const ImageBatch there{room_for(batch->images), room_for(batch->labels)};
  link_.to_device(there.labels, batch->labels);
  epoch.ahead_arrives = link_.to_device(there.images, batch->images);  // copies arrive in order
  epoch.ahead = there;
}

// Trying takes seconds for each size: an epoch's last batch, a shorter one, gets what cuDNN expects to be fast.
void ImageTask::choose_kernels(std::int64_t num_images, const Batches& batches) const {
  if (!world_.device().is_cuda() || settings_.loop.full_determinism) return;
  at::globalContext().setBenchmarkCuDNN(num_images == std::ssize(batches.front()));
}

at::Tensor ImageTask::loss_sum(UnitRunner& runner, std::uint64_t /*seed*/, double /*gradient_scale*/) {
  const std::optional<ImageBatch> batch = std::exchange(loaded_, std::nullopt);
  choose_kernels(batch->labels.numel(), epoch_->batches);
  const at::Tensor loss = image_loss(*model_, batch->images, batch->labels, runner, sums_);
  copy_ahead(*epoch_);
  return loss;
}

TrainTask::Totals ImageTask::evaluate(UnitRunner& runner,
                                      const std::function<void(std::int64_t, std::int64_t)>& after_batch) {
  const auto batches_of_rank = [&](int rank) {
    return Sampler({.num_rows = num_eval_rows(),
                    .rank = rank,
                    .num_ranks = world_.size(),
                    .order = Order::kSequential,
                    .tail = Tail::kUneven})
        .batches(settings_.loop.eval_batch_size);
  };
  const Batches own = batches_of_rank(world_.rank());
  const std::int64_t num_batches = std::ssize(batches_of_rank(0));  // rank 0 has the most
  PrefetchLoader<ImageBatch> loader = loader_of(*evaluation_, own, /*epoch=*/0, /*begin=*/0);
  at::Tensor sums = no_sums(world_.device());
  for (std::int64_t i = 0; i < num_batches; ++i) {
    if (const std::optional<ImageBatch> batch = loader.next()) {
      const ImageBatch there = prepared(copied(*batch));
      choose_kernels(there.labels.numel(), own);
      image_loss(*model_, there.images, there.labels, runner, sums);
    } else {
      pass_idly(*model_, runner, world_.device());
    }
    after_batch(i + 1, num_batches);
  }
  const bool is_counted = !settings_.evaluation.local_metrics || world_.rank() == 0;
  return {is_counted ? read(sums) : std::vector<double>(3, 0.0), num_batches};
}

LogRecord ImageTask::metrics(const std::vector<double>& sums) const {
  return {{"eval_loss", sums[0] / sums[2]}, {"eval_accuracy", sums[1] / sums[2]}};
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

void ImageTask::report_epochs(Trainer& trainer, Console& console, Listeners& listeners) {
  trainer.after_epoch(
      [&, begin = steady_seconds(), first_step = trainer.progress().step](const Update& update) mutable {
        const std::vector<double> own = read(std::exchange(sums_, no_sums(world_.device())));
        const std::vector<std::vector<double>> by_rank = gather_numbers(world_, own);
        const double now = steady_seconds();
        std::vector<double> sums(3);  // of the ranks that the metrics cover
        double num_images = 0;
        for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
          num_images += by_rank[rank][2];
          if (settings_.evaluation.local_metrics && rank > 0) continue;
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += by_rank[rank][i];
        }
        EpochResult result;
        result.epoch = update.epoch + 1;
        result.num_epochs = trainer.plan().num_epochs();
        result.learning_rate = trainer.used_rate();
        result.train_loss = sums[0] / sums[2];
        result.train_accuracy = 100 * (sums[1] / sums[2]);
        result.images_per_second = num_images / (now - std::exchange(begin, now));
        const std::int64_t before = std::exchange(first_step, trainer.progress().step);
        add_validation(trainer.progress().history, before, result);
        if (world_.rank() == 0) console.print_line(format_epoch_line(result));
        listeners.on_epoch_metrics(trainer.now(), result.epoch, epoch_metrics(result));
      });
}

}  // namespace tessera
