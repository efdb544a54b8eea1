#include "train/unbuilt.h"

#include <fmt/format.h>

#include "core/error.h"
#include "train/settings/translate.h"

namespace tessera {

void refuse_unbuilt(const TrainSettings& settings, const Schema& schema) {
  const auto refuse = [&](bool is_asked_for, const char* name, const std::string& instead) {
    if (!is_asked_for) return;
    throw UsageError(fmt::format("{}: not built yet; {}", internal::shown(schema, name), instead));
  };
  refuse(settings.precision.buffers.has_value(), "buffer_dtype", "leave it out");
  refuse(settings.precision.tf32.has_value(), "tf32", "leave it out: libtorch's own choice");
  refuse(!settings.output.log_dir.empty(), "log_dir", "leave it out (and LOG_DIR): the log goes to standard error");
}

}  // namespace tessera
