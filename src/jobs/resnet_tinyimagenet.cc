// resnet-tinyimagenet: train a ResNet-50 on folders of images.
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/environment.h"
#include "core/error.h"
#include "core/host.h"
#include "core/json.h"
#include "core/log.h"
#include "data/images/image_dataset.h"
#include "jobs/image_task.h"
#include "jobs/jobs.h"
#include "jobs/run_plan.h"
#include "jobs/speed_trial.h"
#include "model/resnet.h"
#include "monitor/process_usage.h"
#include "plan/planned_model.h"
#include "settings/load.h"
#include "settings/train_settings.h"
#include "train/step_setup.h"
#include "weights/load_weights.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void declare_resnet(Schema& schema, DeclaredSettings& s) {
  schema.text("model_name_or_path", &s.train.model.name_or_path, "weights to start with; none: from scratch");
}

void declare_images(Schema& schema, DeclaredSettings& s) {
  schema.text("data_dir", &s.train.data.data_dir,
              "folder with train/ and val/: TinyImageNet's own, or one folder per class",
              {.environment = {"DATA_DIR"}});
  schema.integer("image_size", &s.train.data.image_size,
                 "side length of the image that the model sees; validation crops it from one 8/7 as large",
                 {.preset = "224", .at_least = 32, .at_most = 1 << 14});
  schema.boolean("sampler_drop_last", &s.train.data.sampler_drop_last,
                 "drop images that do not divide evenly between the ranks; false: repeat the first ones, as torch does",
                 {.preset = "true"});
}

void declare_image_metrics(Schema& schema, DeclaredSettings& s) {
  schema.boolean("local_metrics", &s.train.evaluation.local_metrics,
                 "report rank 0's own metrics, not those of all ranks");
}

constexpr const char* kHeadWeight = "fc.weight";

// `count` of the items, evenly spread; 0: all.
ImageFolder part_of(ImageFolder folder, std::int64_t count) {
  const std::int64_t size = std::ssize(folder.items);
  if (count == 0 || count >= size) return folder;
  std::vector<ImageItem> items;
  for (std::int64_t i = 0; i < count; ++i) {
    items.push_back(std::move(folder.items[static_cast<std::size_t>(i * size / count)]));
  }
  folder.items = std::move(items);
  return folder;
}

std::int64_t classes_of(const Weights& weights, const fs::path& path, const ImageFolder& data) {
  const WeightEntry* head = weights.find(kHeadWeight);
  if (head == nullptr || head->shape.size() != 2) {
    throw UsageError(fmt::format("{} has no two-dimensional {}: it is not a ResNet-50 with torchvision's names",
                                 path.string(), kHeadWeight));
  }
  const std::int64_t num_classes = head->shape[0], num_in_data = std::ssize(data.classes);
  if (num_classes < num_in_data) {
    throw UsageError(fmt::format("{} has {} classes, but {} has only {}: label {} ({}) is outside them",
                                 data.root.string(), num_in_data, path.string(), num_classes, num_classes,
                                 data.classes[static_cast<std::size_t>(num_classes)]));
  }
  return num_classes;
}

Json config_of(const ImageSettings& settings, std::int64_t num_classes, const ImageFolder& data) {
  Json names = Json::object(), numbers = Json::object();
  for (std::size_t i = 0; i < data.classes.size(); ++i) {
    names[std::to_string(i)] = data.classes[i];
    numbers[data.classes[i]] = i;
  }
  return {{"architectures", {"ResNet50"}},
          {"model_type", "torchvision-resnet50"},
          {"num_labels", num_classes},
          {"id2label", names},
          {"label2id", numbers},
          {"image_size", settings.crop.crop_size},
          {"resize", settings.crop.resize},
          {"image_mean", kPixelMean},
          {"image_std", kPixelDeviation}};
}

ImageSettings image_settings(const TrainSettings& settings, bool augment) {
  ImageSettings images;
  images.augment = augment;
  images.seed = static_cast<std::uint64_t>(settings.loop.seed);
  const CropSettings usual;
  images.crop.crop_size = static_cast<int>(settings.data.image_size);
  // 256 for 224, and in proportion.
  images.crop.resize =
      static_cast<int>((settings.data.image_size * usual.resize + usual.crop_size / 2) / usual.crop_size);
  return images;
}

struct ImageData {
  std::unique_ptr<ImageDataset> training, evaluation;  // evaluation is null if there is nothing to evaluate on
};

// Reads validation images if `evaluates`. --max_train_samples and --max_eval_samples pick images evenly from the list,
// so that every class gets its share. Throws UsageError naming the folder or file.
ImageData open_image_data(const TrainSettings& settings, bool evaluates) {
  const DataSettings& data = settings.data;
  const auto open = [&](ImageSplit split, std::int64_t count) {
    return std::make_unique<ImageDataset>(part_of(read_image_folder(data.data_dir, split), count),
                                          image_settings(settings, split == ImageSplit::kTrain));
  };
  ImageData opened{open(ImageSplit::kTrain, data.max_train_samples), nullptr};
  if (evaluates) opened.evaluation = open(ImageSplit::kValidation, data.max_eval_samples);
  return opened;
}

struct ImageModel {
  std::shared_ptr<ResNet50> model;  // on the CPU, with values
  Json config;                      // of the folder that will be saved
};

// Fresh weights that depend on the seed alone, those of --model_name_or_path (a folder, or a file of torchvision's), or
// the checkpoint's. A model from scratch has as many classes as the data. Throws UsageError if weights do not fit or
// have fewer classes than the data.
ImageModel open_image_model(const TrainSettings& settings, const ImageFolder& data,
                            const std::optional<fs::path>& checkpoint, const Environment& environment) {
  fs::path path = checkpoint.value_or("");
  const std::string& name = settings.model.name_or_path;
  if (path.empty() && !name.empty()) path = find_model_folder(name, environment);
  std::optional<Weights> weights;
  if (!path.empty()) weights.emplace(Weights::open(path));
  const std::int64_t num_classes = weights ? classes_of(*weights, path, data) : std::ssize(data.classes);
  torch::manual_seed(static_cast<std::uint64_t>(settings.loop.seed));
  auto model = std::make_shared<ResNet50>(num_classes);
  if (weights) load_weights(*model, *weights);
  return {std::move(model), config_of(image_settings(settings, false), num_classes, data)};
}

// The settings with all open choices decided.
TrainSettings decided(TrainSettings settings, const World& world, const Schema& schema) {
  PrecisionSettings& precision = settings.precision;
  if (precision.half_on_gpu && world.device().is_cuda()) precision.compute = NumberType::kFloat16;
  MergeAccumulation& merge = settings.loop.merge_accumulation;
  if (merge == MergeAccumulation::kOn) {
    throw UsageError(
        fmt::format("{}: batch norm would see the images of several micro-steps as one batch, which is a different "
                    "model; use off, or a larger --batch_size",
                    shown(schema, "merge_accumulation")));
  }
  merge = MergeAccumulation::kOff;
  return settings;
}

// Whether to evaluate. Throws UsageError if an evaluation is requested but there is nothing to evaluate on.
bool evaluates(const TrainSettings& settings, const Schema& schema) {
  const bool wants =
      settings.flow.evaluation != Interval::kNo || settings.evaluation.on_start || settings.evaluation.at_end;
  if (!wants || image_folder_form(settings.data.data_dir) != ImageFolderForm::kOneTree) return wants;
  for (const char* name : {"eval_strategy", "do_eval", "eval_on_start", "metric_for_best_model",
                           "load_best_model_at_end", "early_stopping_patience"}) {
    const Setting& setting = schema.at(name);
    if (!setting.is_set() || setting.text() == "no" || setting.text() == "false") continue;
    throw UsageError(fmt::format("{}: {} has no folders train and val, so there is nothing to evaluate on",
                                 shown(schema, name), settings.data.data_dir));
  }
  return false;
}

// A pass is a micro-batch.
PlanReport plan_of_images(const TrainSettings& settings, ResNet50& model, std::int64_t num_images, const World& world) {
  PlannedModel planned = planned_resnet50(model, settings.data.image_size);
  StepShape pass;
  const std::int64_t num_of_rank = (num_images + world.size() - 1) / world.size();
  pass.num_sequences = pass.num_tokens = std::min(settings.loop.batch_size, num_of_rank);
  pass.longest = settings.data.image_size;
  pass.casts_parameters = true;
  return plan_of_pass(settings, model, std::move(planned), pass, world, /*merges=*/false);
}

class ImageJob : public OpenJob {
 public:
  ImageJob(World& world, TrainSettings settings, ImageModel model, ImageData data)
      : OpenJob(world, std::move(settings), {*model.model, std::move(model.config)}),
        model_(std::move(model.model)),
        data_(std::move(data)),
        task_(model_, *data_.training, data_.evaluation.get(), settings_, world) {}

  TrainTask& task() override { return task_; }
  PlanReport memory_plan() const override { return plan_of_images(settings_, *model_, data_.training->size(), world_); }

  // So long that pictures decoded beforehand play no part.
  double predicted_update_seconds() override {
    TrialLength length;
    length.uncounted = std::max(length.uncounted, 2 * task_.num_ahead());
    length.counted = std::max(length.counted, 2 * task_.num_ahead());
    return tried_seconds(world_, task_, settings_, first_values(), length);
  }

  void announce(const StepPlan& plan) const override {
    const std::int64_t num_eval = task_.num_eval_rows();
    log_info("{}: {} parameters, strategy {}, {} training images of {} classes, {} validation images", settings_.job,
             num_parameters(*model_), settings_.spread.strategy, data_.training->size(), data_.training->num_classes(),
             num_eval);
    log_info("{} steps of {} x {} images on {} rank{}, {} epochs", plan.total_steps(), settings_.loop.batch_size,
             settings_.loop.accumulation, world_.size(), world_.size() == 1 ? "" : "s", plan.num_epochs());
    if (settings_.precision.compute != NumberType::kFloat32) {
      log_info("mixed precision: convolutions in {}, batch norm, loss and parameters in float32",
               settings_.precision.compute == NumberType::kFloat16 ? "float16" : "bfloat16");
    }
    if (num_eval == 0) log_info("there will be no evaluation");
    if (model_->num_classes() > data_.training->num_classes()) {
      log_info("the model has {} classes, the data has {}", model_->num_classes(), data_.training->num_classes());
    }
  }

  void before_training(Trainer& trainer, Console& console, Listeners& listeners) override {
    begin_ = steady_seconds();
    task_.report_epochs(trainer, console, listeners);
  }

  void after_saving(Trainer&, Console& console, Listeners&) override {
    if (world_.rank() != 0) return;
    console.print_line(fmt::format("Total execution time = {:.3f} sec", steady_seconds() - begin_));
    console.print_line(fmt::format("Max memory used by tensors = {} bytes", peak_tensor_bytes(world_.device())));
  }

 private:
  std::shared_ptr<ResNet50> model_;
  ImageData data_;
  ImageTask task_;
  double begin_ = 0;
};

std::unique_ptr<OpenJob> open_resnet_tinyimagenet(World& world, const LoadedTrainSettings& run,
                                                  const std::optional<fs::path>& checkpoint) {
  start_counting_tensors(world.device());
  TrainSettings settings = decided(run.settings, world, *run.schema);
  ImageData data = open_image_data(settings, evaluates(settings, *run.schema));
  ImageModel model = open_image_model(settings, data.training->folder(), checkpoint, run.request.environment);
  use_gpu_memory(
      settings, [&] { return plan_of_images(settings, *model.model, data.training->size(), world); }, world);
  return std::make_unique<ImageJob>(world, std::move(settings), std::move(model), std::move(data));
}

}  // namespace

Job resnet_tinyimagenet() {
  JobTraits traits = {.name = "resnet-tinyimagenet",
                      .summary = "train a ResNet-50 on TinyImageNet",
                      .example = "--data_dir tiny-imagenet-200 --epochs 90",
                      .presets = {.batch_size = "512",
                                  .learning_rate = "0.001",
                                  .weight_decay = "1e-4",
                                  .max_grad_norm = "0",
                                  .optim = "sgd",
                                  .momentum = "0.9",
                                  .scheduler = "StepLR",
                                  .save_strategy = "no",
                                  .output_dir = "./resnet-tinyimagenet",
                                  .num_workers = "-1"},
                      .is_amp = true,
                      .decays_all = true,
                      .has_buffers = true,
                      .deals_rows = true,
                      .metrics = {"loss", "accuracy"},
                      .declare_model = declare_resnet,
                      .declare_data = declare_images,
                      .declare_evaluation = declare_image_metrics,
                      .evaluation_setting = "--data_dir",
                      .has_evaluation_data = [](const TrainSettings&) { return true; },  // the folder decides
                      .check =
                          [](const Schema&, const DeclaredSettings& s, bool needs_data) {
                            if (needs_data) require(s.train.data.data_dir, "--data_dir FOLDER (or DATA_DIR)");
                          }};
  return {traits, open_resnet_tinyimagenet};
}

}  // namespace tessera
