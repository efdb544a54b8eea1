// What the settings know and the trainer does not do yet.
#pragma once

#include "config/schema.h"
#include "train/settings/train_settings.h"

namespace tessera {

// Throws UsageError naming the first such setting, its value and where it came from: nothing that was asked for is
// passed over in silence.
void refuse_unbuilt(const TrainSettings& settings, const Schema& schema);

}  // namespace tessera
