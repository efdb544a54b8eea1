#include "state/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/text.h"
#include "state/checkpoint.h"
#include "state/model_output.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// When the process that wrote it started.
double writer_of(const fs::path& checkpoint) {
  try {
    return Checkpoint::open(checkpoint).run_state().shape.started;
  } catch (const Error&) {
    return INFINITY;  // looked at first, and named
  }
}

constexpr std::string_view kPrefix = "checkpoint-";

}  // namespace

fs::path unfinished(const fs::path& checkpoint) {
  return checkpoint.parent_path() / fmt::format(".{}.part", checkpoint.filename().string());
}

void remove_unfinished(const fs::path& output_dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(output_dir, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_checkpoint = name.starts_with(".checkpoint-") && name.ends_with(".part");
    const bool is_model = name.starts_with(fmt::format(".{}.part-", kWeightsFile));
    if (is_checkpoint || is_model || is_left_behind(entry.path())) fs::remove_all(entry.path(), ignored);
  }
}

std::vector<fs::path> checkpoints_in(const fs::path& output_dir) {
  std::vector<std::pair<double, std::int64_t>> found;
  for (const std::int64_t step : find_checkpoints(output_dir)) {
    found.emplace_back(writer_of(output_dir / checkpoint_name(step)), step);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> folders;
  for (const auto& [writer, step] : found) folders.push_back(output_dir / checkpoint_name(step));
  return folders;
}

fs::path put_aside(const fs::path& checkpoint) {
  const fs::path aside = checkpoint.parent_path() / fmt::format(".{}.old.part", checkpoint.filename().string());
  std::error_code error;
  fs::remove_all(aside, error);  // of a run that was killed
  fs::rename(checkpoint, aside, error);
  if (error) log_warn("the old checkpoint {} could not be removed: {}", checkpoint.string(), error.message());
  return aside;
}

void delete_folder(const fs::path& aside) {
  std::error_code error;
  fs::remove_all(aside, error);
  if (error) log_warn("{}, an old checkpoint, could not be removed: {}", aside.string(), error.message());
}

void remove_checkpoint(const fs::path& checkpoint) {
  delete_folder(put_aside(checkpoint));
}

// Waits a little: on a network file system a name may appear later on other hosts.
void check_is_shared(const fs::path& file) {
  constexpr int kNumTries = 50;
  for (int i = 0; i < kNumTries; ++i) {
    if (is_there(file)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  throw Error(fmt::format("{} is not there on {}: it was removed, or --output_dir is no folder that all nodes share",
                          file.string(), host_name()));
}

bool is_in_folder(const fs::path& checkpoint, const fs::path& output_dir) {
  std::error_code ignored;
  return fs::equivalent(fs::absolute(checkpoint).lexically_normal().parent_path(), output_dir, ignored);
}

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
  if (!is_there(output_dir)) return steps;
  std::filesystem::directory_iterator folders(output_dir, error);
  if (error) throw Error("cannot look for checkpoints in " + output_dir.string() + ": " + error.message());
  for (const auto& entry : folders) {
    const std::optional<std::int64_t> step = checkpoint_step(entry.path().filename().string());
    if (step && entry.is_directory(error)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::vector<std::int64_t> checkpoints_to_delete(std::vector<std::int64_t> steps, std::optional<std::int64_t> best_step,
                                                std::int64_t save_total_limit) {
  if (save_total_limit <= 0) return {};
  std::ranges::sort(steps);
  std::size_t limit = static_cast<std::size_t>(save_total_limit);
  if (steps.size() <= limit) return {};
  const auto best = best_step ? std::ranges::find(steps, *best_step) : steps.end();
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
