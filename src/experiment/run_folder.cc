#include "experiment/run_folder.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAskedFile = "experiment.json";
constexpr const char* kOutputFolder = "output";

std::string user_named(uid_t id) {
  const passwd* entry = getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}

Json values_json(const Values& values) {
  Json json = Json::object();
  for (const auto& [name, given] : values) json[name] = {{"value", given.text}, {"from", given.origin}};
  return json;
}

[[noreturn]] void refuse_folder(const fs::path& folder, int reason) {
  std::string advice;
  struct stat above {};
  if (reason == EACCES && stat(folder.parent_path().c_str(), &above) == 0) {
    advice =
        fmt::format("; {} belongs to user {}: ask for the right to write there, or name another folder with --runs",
                    folder.parent_path().string(), user_named(above.st_uid));
  }
  throw Error(fmt::format("{}: {}{}", folder.string(), std::strerror(reason), advice));
}

// Makes the folder if it is not there. Another user may just have made the one above and be about to share it.
void make_folder_in_shared(const fs::path& folder) {
  constexpr int kNumTries = 20;
  for (int i = 1;; ++i) {
    if (mkdir(folder.c_str(), 0777) == 0) break;
    if (errno == EEXIST) return;
    if (errno != EACCES || i == kNumTries) refuse_folder(folder, errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  struct stat above {};
  if (stat(folder.parent_path().c_str(), &above) == 0) chmod(folder.c_str(), above.st_mode & 07777);
}

// Folders between that of all runs and a run's own have the rights of the former, so that where several users share it
// each can add runs of any experiment.
fs::path make_shared_folders(const fs::path& runs, const fs::path& name) {
  fs::path folder = runs;
  for (const fs::path& level : name) {
    folder /= level;
    make_folder_in_shared(folder);
  }
  return folder;
}

fs::path take_next_number(const fs::path& runs, const std::string& name) {
  std::error_code reason;
  fs::create_directories(runs, reason);
  if (reason) throw Error(fmt::format("{}: {}", runs.string(), reason.message()));
  const fs::path parent = make_shared_folders(runs, name);
  long long last = 0;  // numbers are not used again, so that the highest is the newest
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, reason)) {
    last = std::max(last, parse_integer(entry.path().filename().string()).value_or(0));
  }
  for (long long number = last + 1; number < last + 1'000'000; ++number) {
    fs::path folder = parent / fmt::format("{:03}", number);
    if (mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) refuse_folder(folder, errno);
  }
  throw Error(fmt::format("{}: no number is free", parent.string()));
}

std::optional<std::string> text_in(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  return std::string(trim(read_file(file)));
}

StoredRun read_stored(const fs::path& folder) {
  StoredRun run;
  run.folder = folder;
  run.asked = read_json_file(folder / kAskedFile);
  const auto text = [&](const char* key) {
    const auto found = run.asked.find(key);
    if (found == run.asked.end() || !found->is_string()) {
      refuse_file((folder / kAskedFile).string(), fmt::format("\"{}\" is missing or no text", key));
    }
    return found->get<std::string>();
  };
  run.experiment = text("experiment");
  run.user = text("user");
  run.number = static_cast<int>(parse_integer(folder.filename().string()).value_or(0));
  if (fs::exists(folder / "submitted.json")) {
    const Json submitted = read_json_file(folder / "submitted.json");
    if (submitted.contains("job_id") && submitted.at("job_id").is_string()) run.job_id = submitted.at("job_id");
  }
  if (const auto status = text_in(folder / "exit_status")) {
    if (const auto number = parse_integer(*status)) run.exit_status = static_cast<int>(*number);
  }
  return run;
}

bool is_result(const fs::path& path) {
  static const std::vector<std::string> endings = {".json", ".jsonl", ".csv", ".txt", ".html",
                                                   ".out",  ".log",   ".sh",  ".gz"};
  const std::string name = path.filename().string();
  return name == "exit_status" ||
         std::any_of(endings.begin(), endings.end(), [&](const std::string& end) { return name.ends_with(end); });
}

bool is_left_out(const std::string& folder) {
  return folder.starts_with("checkpoint-") || folder == "wandb" || folder == "tokenizer";
}

void copy_results(const fs::path& from, const fs::path& to) {
  fs::recursive_directory_iterator place(from);
  for (; place != fs::recursive_directory_iterator(); ++place) {
    if (place->is_directory()) {
      if (is_left_out(place->path().filename().string())) place.disable_recursion_pending();
      continue;
    }
    if (!place->is_regular_file() || !is_result(place->path())) continue;
    const fs::path target = to / fs::relative(place->path(), from);
    fs::create_directories(target.parent_path());
    fs::copy_file(place->path(), target, fs::copy_options::overwrite_existing);
  }
}

}  // namespace

std::string current_user() {
  return user_named(geteuid());
}

std::string Program::version_line() const {
  return commit.empty() ? "tessera " + version : fmt::format("tessera {} ({})", version, commit);
}

Json experiment_json(const ResolvedExperiment& experiment, const Program& program) {
  Json json;
  json["format"] = 1;
  json["experiment"] = experiment.name;
  json["job"] = experiment.job;
  json["preset"] = experiment.preset;
  json["scale"] = experiment.scale == Scale::kTiny ? "tiny" : "full";
  for (const auto& [key, values] : kValueSections) json[key] = values_json(experiment.*values);
  if (!experiment.missing.empty()) json["missing"] = experiment.missing;
  json["files"] = Json::array();
  for (const auto& [name, content] : experiment.files) json["files"].push_back(name);
  json["program"] = program.path;
  json["version"] = program.version;
  json["commit"] = program.commit;
  return json;
}

ResolvedExperiment read_resolved_experiment(const StoredRun& run) {
  const std::string origin = (run.folder / kAskedFile).string();
  ResolvedExperiment experiment;
  experiment.name = run.experiment;
  experiment.job = run.asked.value("job", "");
  experiment.preset = run.asked.value("preset", "");
  experiment.scale = run.asked.value("scale", "") == "tiny" ? Scale::kTiny : Scale::kFull;
  for (const auto& [key, values] : kValueSections) {
    if (!run.asked.contains(key)) refuse_file(origin, fmt::format("\"{}\" is missing", key));
    for (const auto& [name, given] : run.asked.at(key).items()) {
      if (!given.is_object()) refuse_file(origin, fmt::format("{}: {}: expected a value and its origin", key, name));
      (experiment.*values).set(name, given.value("value", ""), given.value("from", ""));
    }
  }
  for (const Json& file : run.asked.value("files", Json::array())) {
    const std::string name = file.get<std::string>();
    experiment.files[name] = read_file(run.folder / name);
  }
  return experiment;
}

fs::path make_run_folder(const fs::path& runs, const ResolvedExperiment& experiment, const Program& program) {
  const fs::path folder = take_next_number(runs, experiment.name);
  for (const auto& [name, content] : experiment.files) {
    fs::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, content);
  }
  fs::create_directories((folder / experiment.resources.require_text("log")).parent_path());
  Json asked = experiment_json(experiment, program);
  asked["user"] = current_user();
  asked["time"] = wall_seconds();
  write_file_atomically(folder / kAskedFile, json_text(asked, 2) + "\n");
  return folder;
}

std::vector<StoredRun> read_stored_runs(const std::vector<fs::path>& folders, std::vector<std::string>& problems) {
  std::vector<StoredRun> found;
  for (const fs::path& folder : folders) {
    try {
      found.push_back(read_stored(folder));
    } catch (const Error& error) {
      problems.push_back(error.what());
    }
  }
  // Numbers in names by their size: 2_gpus before 16_gpus, repeat_2 before repeat_10.
  std::sort(found.begin(), found.end(), [](const StoredRun& a, const StoredRun& b) {
    const int order = ::strverscmp(a.experiment.c_str(), b.experiment.c_str());
    return order != 0 ? order < 0 : a.number < b.number;
  });
  return found;
}

fs::path output_of(const StoredRun& run) {
  return run.folder / kOutputFolder;
}

void collect(const std::vector<StoredRun>& runs, const fs::path& target) {
  for (const StoredRun& run : runs) {
    try {
      copy_results(run.folder, target / run.experiment / run.folder.filename());
    } catch (const fs::filesystem_error& error) {
      throw Error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    }
  }
}

}  // namespace tessera
