#include "state/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/json.h"
#include "core/log.h"
#include "core/output_file.h"
#include "state/checkpoint_rotation.h"
#include "state/foreign_state.h"
#include "state/model_output.h"
#include "state/run_state_file.h"
#include "weights/checkpoint_reader.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

fs::path on_its_way_out(const fs::path& checkpoint) {
  return checkpoint.parent_path() / fmt::format(".{}.old.part", checkpoint.filename().string());
}

// When the process that wrote it started.
double writer_of(const fs::path& checkpoint) {
  try {
    return read_checkpoint_state(checkpoint).started;
  } catch (const Error&) {
    return INFINITY;  // looked at first, and named
  }
}

// Waits a little: on a network file system a name may appear later on other hosts.
bool appears(const fs::path& path) {
  constexpr int kNumTries = 50;
  std::error_code ignored;
  for (int i = 0; i < kNumTries; ++i) {
    if (fs::exists(path, ignored)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return false;
}

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

bool has_sharded_weights(const fs::path& checkpoint) {
  return CheckpointReader::is_checkpoint(checkpoint);
}

bool ranks_read_parts_of(const fs::path& checkpoint) {
  return has_sharded_weights(checkpoint) || !foreign_program(checkpoint).empty();
}

bool holds_only_a_model(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* file) { return fs::exists(folder / file, ignored); };
  const bool has_model = has(kWeightsFile) || has("model.safetensors.index.json");
  if (!has_model || has(kIndexFile) || has(kOptimizerFile) || has(kStateFile)) return false;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {  // a checkpoint that lost its index is damaged
    if (entry.path().filename().string().starts_with("state-")) return false;
  }
  return foreign_program(folder).empty();
}

void check_checkpoint(const fs::path& checkpoint, int rank, int num_ranks) {
  if (has_sharded_weights(checkpoint)) {
    CheckpointReader reader(checkpoint);
    reader.check_sizes();
    reader.verify(rank, num_ranks);
    return;
  }
  std::error_code ignored;
  const auto has = [&](const char* file) { return fs::exists(checkpoint / file, ignored); };
  if (has(kWeightsFile) && has(kOptimizerFile) && has(kStateFile)) return;
  const std::string program = foreign_program(checkpoint);
  if (!program.empty()) {
    throw UsageError(fmt::format("{} is a checkpoint of {}: name it to resume from it", checkpoint.string(), program));
  }
  if (!fs::is_directory(checkpoint, ignored)) {
    throw UsageError(fmt::format("{}: there is no such folder; expected a checkpoint", checkpoint.string()));
  }
  if (const std::vector<std::int64_t> inside = find_checkpoints(checkpoint); !inside.empty()) {
    throw UsageError(fmt::format("{} is no checkpoint, but has some: name one of them, like {}", checkpoint.string(),
                                 (checkpoint / checkpoint_name(inside.back())).string()));
  }
  if (holds_only_a_model(checkpoint)) {
    throw UsageError(
        fmt::format("{} holds the model alone, without the state that a run resumes from (--save_only_model): start "
                    "from it by --model_name_or_path",
                    checkpoint.string()));
  }
  throw UsageError(fmt::format("{} is not a complete checkpoint: it has no {}", checkpoint.string(), kIndexFile));
}

RunState read_checkpoint_state(const fs::path& checkpoint) {
  if (!foreign_program(checkpoint).empty()) return foreign_run_state(checkpoint);
  const fs::path file = checkpoint / kStateFile;
  if (!has_sharded_weights(checkpoint)) return read_run_state(file);
  return run_state_of(parse_json(CheckpointReader(checkpoint).text_of(kStateFile), file.string()), file.string());
}

fs::path put_aside(const fs::path& checkpoint) {
  const fs::path aside = on_its_way_out(checkpoint);
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

void check_is_shared(const fs::path& file) {
  if (appears(file)) return;
  throw Error(fmt::format("{} is not there on {}: it was removed, or --output_dir is no folder that all nodes share",
                          file.string(), host_name()));
}

bool is_in_folder(const fs::path& checkpoint, const fs::path& output_dir) {
  std::error_code ignored;
  return fs::equivalent(fs::absolute(checkpoint).lexically_normal().parent_path(), output_dir, ignored);
}

}  // namespace tessera
