// The records that a trainer logs. Times and rates are rounded as transformers rounds them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/log_record.h"

namespace tessera {

LogRecord train_log(double mean_loss, std::optional<double> grad_norm, double learning_rate, double epoch);
// Without an epoch if nothing is being trained.
LogRecord evaluation_log(const LogRecord& metrics, double seconds, std::int64_t num_samples, std::int64_t num_steps,
                         std::optional<double> epoch = {});
LogRecord train_summary(double seconds, double num_samples, std::int64_t num_steps, double train_loss, double epoch);

}  // namespace tessera
