// Reads DeepSpeed's ds_config.json as settings of Tessera.
//
// Every key on DeepSpeed's configuration page is known: it maps to a setting, has no effect here, or is refused with
// what to do instead. "auto", which Hugging Face's integration fills in, leaves a setting to the other sources.
// DeepSpeed's own defaults for absent keys (the loss scale's numbers) come with is_default.
#pragma once

#include <string>
#include <vector>

#include "settings/foreign_config.h"

namespace tessera {

// `origin` is what messages call the text, usually its path. Throws UsageError.
ForeignConfig read_ds_config(const std::string& origin, const std::string& text);

const std::vector<KeyRule>& ds_config_rules();

}  // namespace tessera
