#include "cli/torch_messages.h"

#include <c10/util/Logging.h>

#include <set>
#include <string>

#include "core/log.h"

namespace tessera {
namespace {

// Some warnings hold the text of an error with all its lines: the first says what matters.
class WarningsInLog : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::string line = warning.msg().substr(0, warning.msg().find('\n'));
    if (shown_.insert(line).second) log_warn("libtorch: {}", line);
  }

 private:
  std::set<std::string> shown_;
};

}  // namespace

void tame_torch_messages() {
  static WarningsInLog handler;
  c10::WarningUtils::set_warning_handler(&handler);
  if (!log_enabled(LogLevel::kDebug)) c10::SetStackTraceFetcher([] { return std::string(); });
}

}  // namespace tessera
