#include "launch/leftovers.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/host.h"
#include "core/process_state.h"
#include "core/text.h"
#include "launch/run_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The entries of a folder that belong to this user.
std::vector<fs::path> own_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    struct stat status {};
    if (lstat(at->path().c_str(), &status) == 0 && status.st_uid == geteuid()) entries.push_back(at->path());
  }
  return entries;
}

bool is_older(const fs::path& path, std::chrono::seconds age) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written > age;
}

void remove_tree(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// "HOST.USER", as Open MPI writes it: with the host's domain or without.
std::vector<std::string> own_names() {
  const std::string host = host_name();
  std::vector<std::string> names;
  for (const std::string& each : {host, host.substr(0, host.find('.'))})
    names.push_back(fmt::format("{}.{}", each, geteuid()));
  return names;
}

bool is_running(const fs::path& process) {
  std::error_code error;
  if (!fs::exists(process, error)) return static_cast<bool>(error);  // what cannot be known counts as running
  return process_state(process) != 'Z';
}

void remove_sessions(const LeftoverPlaces& places) {
  for (const std::string& name : own_names()) {
    for (const fs::path& session : own_entries(places.temporary / ("ompi." + name))) {
      const std::string file = session.filename().string();
      const auto process = file.starts_with("pid.") ? parse_integer(file.substr(4)) : std::nullopt;
      if (!process || *process < 1 || !is_older(session, places.least_age)) continue;
      if (!is_running(places.processes / std::to_string(*process))) remove_tree(session);
    }
  }
}

bool is_shared_memory_of_ranks(const std::string& name) {
  if (name.starts_with("tessera-")) return true;
  const std::vector<std::string> owners = own_names();
  return std::any_of(owners.begin(), owners.end(),
                     [&](const std::string& owner) { return name.starts_with("vader_segment." + owner + "."); });
}

// The files below `folder` that a process of this user has mapped.
std::set<std::string> mapped_below(const fs::path& folder, const fs::path& processes) {
  std::set<std::string> mapped;
  for (const fs::path& process : own_entries(processes)) {
    if (!parse_integer(process.filename().string())) continue;
    std::ifstream maps(process / "maps");
    for (std::string line; std::getline(maps, line);) {
      const std::size_t path = line.find(folder.string() + "/");
      if (path != std::string::npos) mapped.insert(line.substr(path, line.find(' ', path) - path));
    }
  }
  return mapped;
}

void remove_shared_memory(const LeftoverPlaces& places) {
  std::vector<fs::path> candidates = own_entries(places.shared_memory);
  std::erase_if(candidates, [&](const fs::path& path) {
    return !is_shared_memory_of_ranks(path.filename().string()) || !is_older(path, places.least_age);
  });
  if (candidates.empty()) return;
  const std::set<std::string> mapped = mapped_below(places.shared_memory, places.processes);
  for (const fs::path& path : candidates) {
    if (!mapped.contains(path.string())) remove_tree(path);
  }
}

}  // namespace

void remove_leftovers(const LeftoverPlaces& places) noexcept {
  try {
    for (const fs::path& path : own_entries(places.temporary)) {
      if (path.filename().string().starts_with(RunFolder::kPrefix) && RunFolder::is_abandoned(path)) remove_tree(path);
    }
    remove_sessions(places);
    remove_shared_memory(places);
  } catch (const std::exception&) {  // out of memory: the run itself will say so
  }
}

void remove_session(pid_t mpirun, const fs::path& temporary) noexcept {
  try {
    for (const std::string& name : own_names()) {
      remove_tree(temporary / ("ompi." + name) / fmt::format("pid.{}", mpirun));
    }
  } catch (const std::exception&) {  // out of memory: the next run removes it
  }
}

}  // namespace tessera
