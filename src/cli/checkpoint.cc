// `tessera checkpoint ls|verify|show|prune DIR`: checkpoints on disk.
#include "state/checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "core/quantity.h"
#include "core/text.h"
#include "state/checkpoint_folder.h"
#include "state/output_lock.h"
#include "weights/checkpoint_reader.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Of --save_only_model.
constexpr const char* kModelAlone = "the model alone, without checksums and without what a run resumes from";

struct CheckpointCommandSettings {
  std::vector<std::string> words;
  std::int64_t keep = 0;
  bool dry_run = false;
};

// The folder itself, or those in it, oldest first.
std::vector<fs::path> checkpoints_at(const std::string& place) {
  if (!is_folder(place)) throw UsageError(fmt::format("{}: no such folder", place));
  const Checkpoint::Kind kind = Checkpoint::open(place).kind();
  if (kind == Checkpoint::Kind::kSharded || is_there(fs::path(place) / kStateFile)) return {place};
  std::vector<fs::path> found;
  for (const std::int64_t step : find_checkpoints(place)) found.push_back(fs::path(place) / checkpoint_name(step));
  if (found.empty() && kind == Checkpoint::Kind::kModel) return {place};
  if (found.empty()) {
    throw UsageError(fmt::format("{}: no checkpoint: expected one, or a folder with checkpoint-STEP folders", place));
  }
  return found;
}

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored)) bytes += static_cast<std::int64_t>(entry.file_size(ignored));
  }
  return bytes;
}

// The whole line without the data: sizes are looked at, not bytes.
std::string line_of(const fs::path& folder) {
  std::string ranks = "-", fault;
  std::optional<RunState> state;
  try {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    if (checkpoint.kind() == Checkpoint::Kind::kModel) {
      fault = kModelAlone;
    } else if (checkpoint.kind() == Checkpoint::Kind::kSharded) {
      CheckpointReader reader(folder);
      reader.check_sizes();
      ranks = std::to_string(reader.index().num_ranks);
    } else {
      checkpoint.check();
    }
    if (fault.empty()) state = checkpoint.run_state();
  } catch (const Error& error) {
    fault = error.what();
  }
  return fmt::format("{:<20}  {:>5}  {:>7}  {:>10}  {}\n", folder.filename().string(), ranks,
                     state ? fmt::format("{:.2f}", state->progress.epoch) : "-", human_bytes(bytes_in(folder)),
                     fault.empty() ? "complete" : fault);
}

int list(const std::vector<fs::path>& folders) {
  std::string text = fmt::format("{:<20}  {:>5}  {:>7}  {:>10}\n", "checkpoint", "ranks", "epoch", "size");
  for (const fs::path& folder : folders) text += line_of(folder);
  print_out(text);
  return 0;
}

int verify(const std::vector<fs::path>& folders) {
  int num_damaged = 0;
  for (const fs::path& folder : folders) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    if (checkpoint.kind() == Checkpoint::Kind::kModel) {
      print_out(fmt::format("{}: {}\n", folder.string(), kModelAlone));
      continue;
    }
    try {
      checkpoint.check();
      const bool is_sharded = checkpoint.kind() == Checkpoint::Kind::kSharded;
      print_out(fmt::format("{}: {}\n", folder.string(),
                            is_sharded ? "complete, every byte as it was saved" : "complete; it has no checksums"));
    } catch (const Error& error) {
      ++num_damaged;
      print_out(fmt::format("{}: DAMAGED: {}\n", folder.string(), error.what()));
    }
  }
  return num_damaged == 0 ? 0 : static_cast<int>(ExitStatus::kFailure);
}

int show(const fs::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  if (checkpoint.kind() == Checkpoint::Kind::kModel) {
    print_out(fmt::format("{}\n{}; `tessera inspect` shows it\n", folder.string(), kModelAlone));
    return 0;
  }
  const auto [progress, shape] = checkpoint.run_state();
  std::string text = fmt::format("{}\nstep        {} of {}, epoch {:.2f}\n", folder.string(), progress.step,
                                 shape.total_steps, progress.epoch);
  if (progress.best_value) {
    text += fmt::format("best        {}{}\n", *progress.best_value,
                        progress.best_step ? fmt::format(" at step {}", *progress.best_step) : "");
  }
  if (checkpoint.kind() != Checkpoint::Kind::kSharded) {
    const std::string form = checkpoint.program().empty() ? "a model folder with optimizer.safetensors"
                                                          : "a checkpoint of " + checkpoint.program();
    print_out(text + fmt::format("form        {}, without checksums\n", form));
    return 0;
  }
  const CheckpointReader reader(folder);
  const CheckpointIndex& index = reader.index();
  text += fmt::format("written by  {} rank{}\n", index.num_ranks, index.num_ranks == 1 ? "" : "s");
  for (const auto& [name, number] : index.numbers) text += fmt::format("{:<20} {}\n", name, number);
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> kinds;  // tensors and bytes
  for (const auto& [name, tensor] : index.tensors) {
    // "model", "optimizer.exp_avg"
    const std::size_t begin = name.starts_with(kOptimizerPrefix) ? std::string_view(kOptimizerPrefix).size() : 0;
    auto& [count, bytes] = kinds[name.substr(0, name.find('.', begin))];
    ++count;
    for (const StoredPart& part : tensor.parts) bytes += (part.end - part.begin) * bytes_of(tensor.type);
  }
  text += fmt::format("\n  {:<28} {:>8} {:>10}\n", "state", "tensors", "bytes");
  for (const auto& [kind, counts] : kinds) {
    text += fmt::format("  {:<28} {:>8} {:>10}\n", printable(kind), counts.first, human_bytes(counts.second));
  }
  text += fmt::format("\n  {:<40} {:>10}\n", "file", "bytes");
  for (const auto& [name, file] : index.files) {
    text += fmt::format("  {:<40} {:>10}\n", printable(name), human_bytes(file.bytes));
  }
  print_out(text);
  return 0;
}

// The newest intact ones stay, as a resume would take them, and the best.
int prune(const std::string& place, const CheckpointCommandSettings& settings) {
  const std::vector<fs::path> all = checkpoints_in(place);
  if (all.empty()) throw UsageError(fmt::format("{}: no checkpoint-STEP folder in it", place));
  const OutputLock lock(place, Environment::of_process());
  std::vector<fs::path> staying, going;
  std::optional<fs::path> best;
  for (const fs::path& folder : all) {
    try {
      const Checkpoint checkpoint = Checkpoint::open(folder);
      checkpoint.check();
      const RunProgress progress = checkpoint.run_state().progress;
      if (staying.empty() && progress.best_step) best = fs::path(place) / checkpoint_name(*progress.best_step);
    } catch (const Error& error) {
      log_warn("not touched: {}", error.what());
      continue;
    }
    (std::ssize(staying) < settings.keep ? staying : going).push_back(folder);
  }
  std::string text;
  for (const fs::path& folder : going) {
    if (folder == best) continue;
    text += fmt::format("{} {}\n", settings.dry_run ? "would remove" : "removed", folder.string());
    if (!settings.dry_run) remove_checkpoint(folder);
  }
  print_out(text.empty() ? fmt::format("{} checkpoints: nothing to remove\n", all.size()) : text);
  return 0;
}

void declare(Schema& schema, CheckpointCommandSettings& settings) {
  schema.positionals("ls|verify|show|prune DIR: a checkpoint, or the output folder of a run", &settings.words);
  schema.group("prune");
  schema.integer("keep", &settings.keep,
                 "how many intact ones stay, the newest; the best stays too, and damaged ones are not touched",
                 {.preset = "0", .at_least = 0});
  schema.boolean("dry_run", &settings.dry_run, "only say what would be removed");
}

int run_checkpoint(Schema&, CheckpointCommandSettings& settings) {
  const std::string verb = settings.words.empty() ? "" : settings.words.front();
  if (settings.words.size() != 2 || (verb != "ls" && verb != "verify" && verb != "show" && verb != "prune")) {
    throw UsageError("expected: tessera checkpoint ls|verify|show|prune DIR; `tessera checkpoint --help` shows more");
  }
  const std::string& place = settings.words.back();
  if (verb == "prune") {
    if (settings.keep == 0) throw UsageError("tessera checkpoint prune: say how many stay: --keep N, at least 1");
    return prune(place, settings);
  }
  if (settings.keep > 0 || settings.dry_run) throw UsageError("--keep and --dry_run are options of prune");
  const std::vector<fs::path> folders = checkpoints_at(place);
  if (verb == "ls") return list(folders);
  if (verb == "verify") return verify(folders);
  if (folders.size() > 1) throw UsageError(fmt::format("{} has {} checkpoints: name one", place, folders.size()));
  return show(folders.front());
}

}  // namespace

Command checkpoint_command() {
  return with_settings<CheckpointCommandSettings>(
      {.name = "checkpoint", .summary = "list, check, show and remove checkpoints", .has_rank = false}, declare,
      run_checkpoint);
}

}  // namespace tessera
