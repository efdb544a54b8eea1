// The settings of a run as its records hold them: typed, and with what was decided where a setting said 'auto'.
#pragma once

#include <vector>

#include "core/json.h"
#include "core/log_record.h"
#include "record/run_record.h"
#include "settings/load.h"

namespace tessera {

// `decided`: values by the names of settings (RunFacts::decided); names that the schema does not have are left out.
std::vector<RecordedSetting> recorded_settings(const Schema& schema, const LogRecord& decided);

// {"learning_rate": 5e-05, "strategy": "zero2"}. Settings without a value are null.
Json settings_json(const std::vector<RecordedSetting>& settings);

}  // namespace tessera
