// DeepSpeed's ds_config.json, told in our settings.
//
// Every key of DeepSpeed's page of settings is known: it is a setting, or has no effect here, or is refused with what
// to do instead. "auto" leaves a setting to the other sources, where Hugging Face's integration fills it in. What
// DeepSpeed would take for keys that are absent (the loss scale's numbers) comes with is_default.
#pragma once

#include <string>
#include <vector>

#include "settings/foreign_config.h"

namespace tessera {

// `origin` is what messages call the text, usually its path. Throws UsageError.
ForeignConfig read_ds_config(const std::string& origin, const std::string& text);

const std::vector<KeyRule>& ds_config_rules();

}  // namespace tessera
