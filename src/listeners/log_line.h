// Log lines as transformers 4 prints them: {'loss': 4.895, 'grad_norm': 81.5, 'epoch': 4.0}
#pragma once

#include <string>

#include "core/log_record.h"

namespace tessera {

// Values are printed as they are, except 'epoch', which transformers prints with two places (its records keep all), and
// 'total_flos', which it leaves out.
std::string format_log_line(const LogRecord& record);
// "Evaluation Metrics: {'exact_match': 0.0, 'f1': 0.0184947800077543}"
std::string format_evaluation_metrics(const LogRecord& record);

}  // namespace tessera
