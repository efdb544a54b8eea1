#include "record/find_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExperimentName = "experiment.json";
constexpr int kMaxDepth = 16;  // of folders: far more than people use, for file systems that show themselves again

class RunSearch {
 public:
  void search(const fs::path& folder, int depth) {
    if (depth > kMaxDepth || !is_new(folder)) return;
    std::error_code ignored;
    const bool is_run = is_file(folder / kRecordFile);
    if (is_run) found_.records.push_back(folder / kRecordFile);
    if (is_file(folder / kExperimentName)) found_.experiment_folders.push_back(folder);
    std::vector<fs::path> below, logs;
    for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
      std::error_code unknown;
      if (is_bandwidth_log(entry->path().filename()) && entry->is_regular_file(unknown)) logs.push_back(entry->path());
      if (is_searched(entry->path().filename().string(), is_run) && entry->is_directory(unknown)) {
        below.push_back(entry->path());
      }
    }
    std::ranges::sort(logs);
    found_.bandwidth_logs.insert(found_.bandwidth_logs.end(), logs.begin(), logs.end());
    std::ranges::sort(below);
    for (const fs::path& each : below) search(each, depth + 1);
  }

  void add_file(const fs::path& file) {
    if (file.extension() == ".log") {
      found_.bandwidth_logs.push_back(file);
    } else if (is_new(file.parent_path().empty() ? "." : file.parent_path())) {
      found_.records.push_back(file);
    }
  }

  RunPlaces take() { return std::move(found_); }

 private:
  static bool is_bandwidth_log(const fs::path& name) {
    return name.extension() == ".log" && (name.string().starts_with("comm_test") || name.string().starts_with("nccl"));
  }

  static bool is_searched(const std::string& name, bool is_in_run) {
    if (name.starts_with('.') || name.starts_with("checkpoint-") || name == "wandb") return false;
    if (!is_in_run) return true;
    for (const char* own : {"runs", "log", "logs", "gpu_memory", "cpu_memory"}) {
      if (name == own) return false;
    }
    return true;
  }

  // Device and inode, so that a link back up ends the search.
  bool is_new(const fs::path& folder) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return false;
    return seen_.emplace(status.st_dev, status.st_ino).second;
  }

  std::set<std::pair<dev_t, ino_t>> seen_;
  RunPlaces found_;
};

}  // namespace

RunPlaces find_run_places(const std::vector<std::string>& places) {
  RunSearch search;
  for (const std::string& place : places) {
    if (is_folder(place)) {
      search.search(place, 0);
    } else if (is_there(place)) {
      search.add_file(place);
    } else {
      throw UsageError(fmt::format("{}: no such file or folder; name a run's folder, or one above it", place));
    }
  }
  return search.take();
}

std::vector<fs::path> find_run_files(const std::vector<std::string>& places) {
  return find_run_places(places).records;
}

FoundRuns read_runs(const std::vector<fs::path>& files, RunDetail detail) {
  std::vector<std::optional<RunRecord>> runs(files.size());
  std::vector<std::string> problems(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        runs[i] = read_run_record(files[i], detail);
      } catch (const Error& error) {
        problems[i] = error.what();
      } catch (const std::exception& error) {  // whatever a broken file makes of the JSON library
        problems[i] = fmt::format("{}: {}", files[i].string(), error.what());
      }
    }
  };
  {
    // Parsing takes most of the time. More threads than this wait for the disk.
    const unsigned num_threads = std::min(std::max(1u, std::thread::hardware_concurrency()), 8u);
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < num_threads && i < files.size(); ++i) helpers.emplace_back(work);
    work();
  }
  FoundRuns found;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (runs[i]) {
      found.runs.push_back(std::move(*runs[i]));
    } else {
      found.problems.push_back(std::move(problems[i]));
    }
  }
  return found;
}

FoundRuns find_runs(const std::vector<std::string>& places, RunDetail detail) {
  return read_runs(find_run_files(places), detail);
}

}  // namespace tessera
