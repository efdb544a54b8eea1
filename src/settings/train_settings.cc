#include "settings/train_settings.h"

#include <algorithm>

namespace tessera {

const std::vector<std::string>& job_names() {
  static const std::vector<std::string> names = {"bloom-qa", "gpt-qa", "resnet-tinyimagenet"};
  return names;
}

const std::string& name_of(Job job) {
  return job_names()[static_cast<std::size_t>(job)];
}

std::optional<Job> job_of(const std::string& name) {
  const auto found = std::find(job_names().begin(), job_names().end(), name);
  if (found == job_names().end()) return std::nullopt;
  return static_cast<Job>(found - job_names().begin());
}

OptimizerKind optimizer_kind_of(const std::string& optim) {
  return optim == "sgd" ? OptimizerKind::kSgd : optim == "adam" ? OptimizerKind::kAdam : OptimizerKind::kAdamW;
}

}  // namespace tessera
