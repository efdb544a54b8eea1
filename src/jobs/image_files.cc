#include "jobs/image_files.h"

#include <fmt/format.h>
#include <torch/utils.h>

#include <utility>

#include "core/error.h"
#include "weights/load_weights.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeadWeight = "fc.weight";

CropSettings crop_of(std::int64_t image_size) {
  CropSettings crop;
  const CropSettings usual;
  crop.crop_size = static_cast<int>(image_size);
  // 256 for 224, and in proportion.
  crop.resize = static_cast<int>((image_size * usual.resize + usual.crop_size / 2) / usual.crop_size);
  return crop;
}

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

fs::path weights_path(const TrainSettings& settings, const std::optional<fs::path>& checkpoint,
                      const Environment& environment) {
  if (checkpoint) return *checkpoint;
  const std::string& name = settings.model.name_or_path;
  return name.empty() ? fs::path() : find_model_folder(name, environment);
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
          {"image_mean", settings.normalization.mean},
          {"image_std", settings.normalization.deviation}};
}

ImageSettings image_settings(const TrainSettings& settings, bool augment) {
  ImageSettings images;
  images.augment = augment;
  images.seed = static_cast<std::uint64_t>(settings.loop.seed);
  images.crop = crop_of(settings.data.image_size);
  return images;
}

}  // namespace

ImageData open_image_data(const TrainSettings& settings, bool evaluates) {
  const DataSettings& data = settings.data;
  const auto open = [&](ImageSplit split, std::int64_t count) {
    return std::make_unique<ImageDataset>(part_of(read_image_folder(data.data_dir, split), count),
                                          image_settings(settings, split == ImageSplit::kTrain));
  };
  ImageData opened{open(ImageSplit::kTrain, data.max_train_samples), nullptr};
  if (evaluates && image_folder_form(data.data_dir) != ImageFolderForm::kOneTree) {
    opened.evaluation = open(ImageSplit::kValidation, data.max_eval_samples);
  }
  return opened;
}

ImageModel open_image_model(const TrainSettings& settings, const ImageFolder& data,
                            const std::optional<fs::path>& checkpoint, const Environment& environment) {
  const fs::path path = weights_path(settings, checkpoint, environment);
  std::optional<Weights> weights;
  if (!path.empty()) weights.emplace(Weights::open(path));
  const std::int64_t num_classes = weights ? classes_of(*weights, path, data) : std::ssize(data.classes);
  torch::manual_seed(static_cast<std::uint64_t>(settings.loop.seed));
  auto model = std::make_shared<ResNet50>(num_classes);
  if (weights) load_weights(*model, *weights);
  return {std::move(model), config_of(image_settings(settings, false), num_classes, data)};
}

}  // namespace tessera
