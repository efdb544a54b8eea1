// What the image job needs, made from the settings: data folders and model.
//
// Every rank reads the same files and gets the same result or refusal.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/environment.h"
#include "core/json.h"
#include "data/images/image_dataset.h"
#include "model/resnet.h"
#include "settings/train_settings.h"
#include "state/model_output.h"

namespace tessera {

struct ImageData {
  std::unique_ptr<ImageDataset> training, evaluation;  // evaluation is null if there is nothing to evaluate on
};

// Reads validation images if `evaluates`; a plain tree of classes has none. --max_train_samples and --max_eval_samples
// pick images evenly from the list, so that every class gets its share. Throws UsageError naming the folder or file.
ImageData open_image_data(const TrainSettings& settings, bool evaluates);

struct ImageModel {
  std::shared_ptr<ResNet50> model;  // on the CPU, with values
  Json config;                      // of the folder that will be saved
};

// Fresh weights that depend on the seed alone, those of --model_name_or_path (a folder, or a file of torchvision's), or
// the checkpoint's. A model from scratch has as many classes as the data. Throws UsageError if weights do not fit or
// have fewer classes than the data.
ImageModel open_image_model(const TrainSettings& settings, const ImageFolder& data,
                            const std::optional<std::filesystem::path>& checkpoint, const Environment& environment);

}  // namespace tessera
