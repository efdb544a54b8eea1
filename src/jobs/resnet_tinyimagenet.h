// resnet-tinyimagenet: train a ResNet-50 on folders of images.
#pragma once

#include "jobs/jobs.h"

namespace tessera {

const JobTraits& resnet_tinyimagenet_traits();
std::unique_ptr<OpenJob> open_resnet_tinyimagenet(World& world, const LoadedTrainSettings& run,
                                                  const std::optional<std::filesystem::path>& checkpoint);

}  // namespace tessera
