#include "state/checkpoint_rotation.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::string_view kPrefix = "checkpoint-";

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return std::string(kPrefix) + std::to_string(step);
}

std::optional<std::int64_t> checkpoint_step(const std::string& folder_name) {
  if (!folder_name.starts_with(kPrefix)) return std::nullopt;
  const std::optional<long long> step = parse_integer(std::string_view(folder_name).substr(kPrefix.size()));
  // One name per step: checkpoint-007 and checkpoint-+7 are not ours to delete.
  if (!step || *step < 0 || checkpoint_name(*step) != folder_name) return std::nullopt;
  return *step;
}

std::vector<std::int64_t> find_checkpoints(const std::filesystem::path& output_dir) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  if (!std::filesystem::exists(output_dir, error)) return steps;
  std::filesystem::directory_iterator folders(output_dir, error);
  if (error) throw Error("cannot look for checkpoints in " + output_dir.string() + ": " + error.message());
  for (const auto& entry : folders) {
    const std::optional<std::int64_t> step = checkpoint_step(entry.path().filename().string());
    if (step && entry.is_directory(error)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::int64_t> checkpoints_to_delete(std::vector<std::int64_t> steps, std::optional<std::int64_t> best_step,
                                                std::int64_t save_total_limit) {
  if (save_total_limit <= 0) return {};
  std::sort(steps.begin(), steps.end());
  std::size_t limit = static_cast<std::size_t>(save_total_limit);
  if (steps.size() <= limit) return {};
  const auto best = best_step ? std::find(steps.begin(), steps.end(), *best_step) : steps.end();
  if (best != steps.end() && *best != steps.back()) {
    // The best moves to the place before the newest, as if it were the second newest.
    std::rotate(best, best + 1, steps.end() - 1);
    limit = std::max<std::size_t>(limit, 2);
  }
  if (steps.size() <= limit) return {};
  steps.resize(steps.size() - limit);
  return steps;
}

}  // namespace tessera
