#include "state/checkpoint_keeper.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/quantity.h"
#include "monitor/host_info.h"
#include "state/checkpoint.h"
#include "state/checkpoint_folder.h"
#include "state/run_state_file.h"
#include "state/unit_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Last of all, with every file that lies there: those of other ranks too, which a network file system may show late.
void write_index(CheckpointIndex& index, const fs::path& folder) {
  for (const auto& [name, unused] : index.files) check_is_shared(folder / name);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = entry.is_regular_file() && !name.starts_with('.');  // NFS has files of its own
    if (is_ours && !index.files.contains(name)) add_file(index, entry.path());
  }
  write_file_atomically(folder / kIndexFile, index_text(index));
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output,
                                   Listeners& listeners, std::function<void()> check_lock)
    : world_(world), model_(model), output_(output), listeners_(listeners), check_lock_(std::move(check_lock)) {
  if (world.rank() == 0) remove_unfinished(output.output_dir);
}

fs::path CheckpointKeeper::folder_of(std::int64_t step) const {
  return fs::path(output_.output_dir) / checkpoint_name(step);
}

// Rank 0 looks and shares the result, since the best checkpoint decides whether there is a collective.
void CheckpointKeeper::adopt(const fs::path& checkpoint, const RunProgress& progress) {
  const std::vector<std::int64_t>& steps = progress.checkpoints;
  const fs::path told = progress.best_checkpoint;
  const fs::path beside = checkpoint.parent_path() / told.filename();    // if the folder has been moved
  constexpr std::size_t kNowhere = 0, kTold = 1, kBeside = 2, kOwn = 3;  // kOwn + i: the i-th of the steps
  std::vector<double> found(steps.size() + 1, 0.0);  // whether each one exists; last, where the best is
  if (world_.rank() == 0) {
    std::error_code ignored;
    const bool is_told = !told.empty() && is_there(told);
    const bool is_beside = !told.empty() && !is_told && is_there(beside);
    std::size_t place = is_told ? kTold : is_beside ? kBeside : kNowhere;
    const bool continues = is_in_folder(checkpoint, output_.output_dir);
    for (std::size_t i = 0; continues && i < steps.size(); ++i) {
      found[i] = is_there(folder_of(steps[i])) ? 1 : 0;
      if (place != kNowhere && fs::equivalent(is_told ? told : beside, folder_of(steps[i]), ignored)) place = kOwn + i;
    }
    found.back() = static_cast<double>(place);
  }
  found = sum_over_ranks(world_, found);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (found[i] > 0) kept_.insert(steps[i]);
  }
  const auto place = static_cast<std::size_t>(found.back());
  if (place != kNowhere) best_ = place == kTold ? told : place == kBeside ? beside : folder_of(steps[place - kOwn]);
}

// The steps to delete, now that a new one is kept.
std::vector<std::int64_t> CheckpointKeeper::old_ones() const {
  std::optional<std::int64_t> best_step;
  for (const std::int64_t step : kept_) {
    if (best_ == folder_of(step)) best_step = step;
  }
  return checkpoints_to_delete({kept_.begin(), kept_.end()}, best_step, output_.save_total_limit);
}

void CheckpointKeeper::save(const TrainingView& view) {
  finish();
  if (!try_to([&] { begin(view); })) return;
  saved_step_ = view.progress.step;
  num_polls_ = 0;
}

// The first answer after a save is to the question before it.
void CheckpointKeeper::poll(bool any_rank_was_writing) {
  if (open_ && ++num_polls_ >= 2 && !any_rank_was_writing) finish();
}

void CheckpointKeeper::finish() {
  if (!try_to([&] { complete(); })) saved_step_.reset();
}

// Only what the disk refuses is ignored: not ranks that are gone, nor a folder that another run has taken.
bool CheckpointKeeper::try_to(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (output_.save_errors == SaveErrors::kStop || error.status() != ExitStatus::kFailure) throw;
    if (world_.rank() == 0) log_warn("{}; training goes on (--save_errors warn)", error.what());
    ++num_failures_;
    return false;
  }
}

void CheckpointKeeper::begin(const TrainingView& view) {
  RunProgress& progress = view.progress;
  Engine& engine = view.step.engine();
  open_.emplace(Open{view, folder_of(progress.step), steady_seconds(), progress_numbers(view.step),
                     !output_.save_only_model, best_});
  const fs::path part = unfinished(open_->folder);
  kept_.insert(progress.step);
  if (progress.best_step && kept_.contains(*progress.best_step)) {
    best_ = folder_of(*progress.best_step);
    progress.best_checkpoint = best_->string();
  }
  progress.checkpoints.assign(kept_.begin(), kept_.end());  // adopt() looks which of them are still there
  StateSnapshot::Copies copies = StateSnapshot::Copies::kNone;
  try {
    // The copy goes first: it runs while the folder is made. Weights, which are gathered, go before it: a copy on the
    // GPU leaves them little room.
    const bool gathers = output_.save_only_model || output_.save_hf_weights;
    std::shared_ptr<StateSnapshot> snapshot;
    if (gathers) prepare(engine, part);
    if (open_->has_state) {
      engine.sync_buffers();
      snapshot = std::make_shared<StateSnapshot>(SpreadModel{world_, engine, model_.model}, view.step);
      copies = copies_for(snapshot->sizes());
      on_every_rank(world_, [&] { view.step.update_after(snapshot->copy(copies, buffer_)); });
    }
    if (!gathers) prepare(engine, part);
    if (open_->has_state) write_in_background(std::move(snapshot), part);
  } catch (const Error& error) {
    throw given_up(error);
  } catch (...) {
    give_up();
    throw;
  }
  if (copies == StateSnapshot::Copies::kNone) complete();
}

// What must be done in step with the other ranks.
void CheckpointKeeper::prepare(Engine& engine, const fs::path& part) const {
  on_first_rank(world_, [&] {
    if (!fs::exists(output_.output_dir)) throw Error(output_.output_dir + " has been removed");
    std::error_code reason;
    fs::create_directory(part, reason);  // its parent must be there: model_output.h says why
    if (reason) throw Error(fmt::format("cannot create the folder {}: {}", part.string(), reason.message()));
  });
  if (output_.save_only_model || output_.save_hf_weights) {
    save_model_folder(world_, engine, model_, part);
  }
  if (!output_.save_only_model) on_every_rank(world_, [&] { check_is_shared(part); });
}

// The small files too: a disk takes milliseconds to confirm each, and a long run's history is long.
void CheckpointKeeper::write_in_background(std::shared_ptr<StateSnapshot> snapshot, const fs::path& part) {
  const bool is_first = world_.rank() == 0, has_model_files = output_.save_hf_weights;
  const TrainingView& view = open_->view;
  RunState state = is_first ? RunState{view.progress, view.shape} : RunState();
  open_->written =
      std::async(std::launch::async, [&model = model_, state = std::move(state), snapshot = std::move(snapshot), part,
                                      device = world_.device(), is_first, has_model_files]() mutable {
        const auto own = std::move(snapshot);  // freed when it is written
        if (is_first && !has_model_files) write_model_files(model, part);
        if (is_first) write_run_state(part / kStateFile, state);
        const c10::DeviceGuard there(device);  // a new thread starts on device 0, which may be another rank's
        return own->write(part);
      });
}

// Where memory allows: on the GPU, in milliseconds; else on the host, beside the next passes. All ranks decide alike.
StateSnapshot::Copies CheckpointKeeper::copies_for(const StateSnapshot::Sizes& sizes) const {
  using Copies = StateSnapshot::Copies;
  if (output_.save_mode == SaveMode::kDisabled) return Copies::kNone;
  constexpr std::int64_t kGpuReserve = std::int64_t{1} << 30;
  const bool is_gpu = world_.device().is_cuda();
  // Half of the host's free memory, shared by its ranks; a buffer that is there already is free.
  const std::int64_t on_host = read_memory_info().usable_bytes().value_or(0) / 2 / world_.node().size() +
                               (buffer_.defined() ? buffer_.numel() : 0);
  std::int64_t on_gpu = 0;
  if (is_gpu) {
    auto* allocator = at::getDeviceAllocator(world_.device().type());
    const auto stats = allocator->getDeviceStats(world_.device().index());
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    // Of what the allocator keeps for later, half: it is in pieces.
    on_gpu = static_cast<std::int64_t>(allocator->getMemoryInfo(world_.device().index()).first) +
             (stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current) / 2;
  }
  const bool fits_in_place = is_gpu && sizes.on_device + kGpuReserve < on_gpu && sizes.on_host <= on_host;
  const bool fits_on_host = sizes.sum() <= on_host;
  const std::vector<double> fit = sum_over_ranks(world_, {fits_in_place ? 1.0 : 0.0, fits_on_host ? 1.0 : 0.0});
  const bool wants_pinned = is_gpu && output_.save_mode == SaveMode::kAsyncWithPinnedMemory;
  if (fit[0] == world_.size() && !wants_pinned) return Copies::kOnDevice;
  if (fit[1] == world_.size()) return is_gpu ? Copies::kOnHostPinned : Copies::kOnHost;
  return Copies::kNone;
}

bool CheckpointKeeper::is_writing() const {
  return open_ && open_->written.valid() &&
         open_->written.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void CheckpointKeeper::complete() {
  if (!open_) return;
  try {
    CheckpointIndex index;
    if (open_->has_state) {
      CheckpointIndex own;
      on_every_rank(world_, [&] { own = open_->written.get(); });
      const SpreadModel spread{world_, open_->view.step.engine(), model_.model};
      index = gather_index(spread, open_->numbers, own);
    }
    const std::vector<std::int64_t> old = old_ones();
    index.step = open_->view.moment.step;
    std::int64_t num_bytes = 0;
    for (const auto& [name, file] : index.files) num_bytes += file.bytes;
    on_first_rank(world_, [&] { appear(std::move(index), old); });
    for (const std::int64_t step : old) kept_.erase(step);
    if (world_.rank() == 0 && open_->has_state) {
      log_info("{}: {} written in {:.2f} s", open_->folder.filename().string(), human_bytes(num_bytes),
               steady_seconds() - open_->began);
    }
  } catch (const Error& error) {
    throw given_up(error);
  } catch (...) {
    give_up();
    throw;
  }
  const Open done = std::move(*open_);
  open_.reset();
  std::vector<fs::path> kept;
  for (const std::int64_t step : kept_) kept.push_back(folder_of(step));
  listeners_.on_save(done.view.moment, {done.folder, kept});
}

void CheckpointKeeper::appear(CheckpointIndex index, const std::vector<std::int64_t>& old) {
  const fs::path &folder = open_->folder, part = unfinished(folder);
  if (check_lock_) check_lock_();
  if (open_->has_state) write_index(index, part);
  std::vector<fs::path> aside;
  if (fs::exists(folder)) aside.push_back(put_aside(folder));  // from an earlier run in the same folder
  fs::rename(part, folder);
  flush_folder(folder.parent_path());
  for (const std::int64_t step : old) aside.push_back(put_aside(folder_of(step)));
  // Freeing gigabytes takes a file system seconds.
  removal_ = std::async(std::launch::async, [aside = std::move(aside)] {
    for (const fs::path& each : aside) delete_folder(each);
  });
}

void CheckpointKeeper::give_up(bool removes) {
  if (open_->written.valid()) open_->written.wait();
  std::error_code ignored;
  if (world_.rank() == 0 && removes) fs::remove_all(unfinished(open_->folder), ignored);  // a full disk needs the space
  kept_.erase(open_->view.moment.step);
  best_ = open_->best_before;
  open_->view.progress.best_checkpoint = best_ ? best_->string() : "";
  open_.reset();
}

Error CheckpointKeeper::given_up(const Error& error) {
  const std::string what = open_->folder.string();
  give_up(error.status() != ExitStatus::kUsage);  // which says that the folder is another run's by now
  return error.in_context(fmt::format(
      "{} was not written{}", what,
      kept_.empty() ? "" : fmt::format("; {} is complete", folder_of(*kept_.rbegin()).filename().string())));
}

}  // namespace tessera
