#include "launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Holds the host's name, written once it is locked: TMPDIR may be shared by hosts whose locks do not see each other.
constexpr const char* kLock = "/lock";

std::string order_path(const std::string& folder) {
  return folder + "/order.msgpack";
}

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

bool is_old_enough(const fs::path& path) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written > std::chrono::minutes(1);
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

void remove_sessions(const fs::path& temporary) {
  for (const std::string& name : own_names()) {
    for (const fs::path& session : own_entries(temporary / ("ompi." + name))) {
      const std::string file = session.filename().string();
      const auto process = file.starts_with("pid.") ? parse_integer(file.substr(4)) : std::nullopt;
      if (!process || *process < 1 || *process > std::numeric_limits<pid_t>::max() || !is_old_enough(session)) continue;
      if (has_ended(static_cast<pid_t>(*process))) remove_tree(session);
    }
  }
}

bool is_shared_memory_of_ranks(const std::string& name) {
  if (name.starts_with("tessera-")) return true;
  const std::vector<std::string> owners = own_names();
  return std::ranges::any_of(
      owners, [&](const std::string& owner) { return name.starts_with("vader_segment." + owner + "."); });
}

// The files below `folder` that a process of this user has mapped.
std::set<std::string> mapped_below(const std::string& folder) {
  std::set<std::string> mapped;
  for (const fs::path& process : own_entries("/proc")) {
    if (!parse_integer(process.filename().string())) continue;
    std::ifstream maps(process / "maps");
    for (std::string line; std::getline(maps, line);) {
      const std::size_t path = line.find(folder + "/");
      if (path != std::string::npos) mapped.insert(line.substr(path, line.find(' ', path) - path));
    }
  }
  return mapped;
}

void remove_shared_memory() {
  constexpr const char* kFolder = "/dev/shm";
  std::vector<fs::path> candidates = own_entries(kFolder);
  std::erase_if(candidates, [](const fs::path& path) {
    return !is_shared_memory_of_ranks(path.filename().string()) || !is_old_enough(path);
  });
  if (candidates.empty()) return;
  const std::set<std::string> mapped = mapped_below(kFolder);
  for (const fs::path& path : candidates) {
    if (!mapped.contains(path.string())) remove_tree(path);
  }
}

}  // namespace

RunFolder::RunFolder(const Environment& environment) {
  std::string base = environment.find("TMPDIR").value_or("/tmp");
  if (base.size() > 70) base = "/tmp";  // the socket's path must fit in its address
  path_ = base + "/" + kPrefix + "XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw Error("cannot make a folder in " + base + ": " + std::strerror(errno));
  lock_ = Fd(open((path_ + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::string host = host_name();
  // Without the lock (a file system that has none) nobody ever takes the folder for abandoned.
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) (void)!write(lock_.get(), host.data(), host.size());
}

RunFolder::~RunFolder() {
  remove_tree(path_);
}

bool RunFolder::is_abandoned(const fs::path& folder) {
  const Fd lock(open((folder.string() + kLock).c_str(), O_RDWR | O_CLOEXEC));
  if (!lock) return false;
  std::array<char, 256> host{};
  const ssize_t size = read(lock.get(), host.data(), host.size());
  if (size <= 0 || std::string_view(host.data(), static_cast<std::size_t>(size)) != host_name()) return false;
  return flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

std::map<std::string, std::string> rank_environment(const RankOrder& order, int local_rank) {
  const auto number = [](int value) { return std::to_string(value); };
  std::map<std::string, std::string> variables = order.environment;
  const std::map<std::string, std::string> ours = {
      {"RANK", number(order.rank(local_rank))},
      {"WORLD_SIZE", number(order.world_size())},
      {"LOCAL_RANK", number(local_rank)},
      {"LOCAL_WORLD_SIZE", number(order.num_local_ranks)},
      {"GROUP_RANK", number(order.node_rank)},
      {"GROUP_WORLD_SIZE", number(order.num_nodes)},
      {"NODE_RANK", number(order.node_rank)},
      {"MASTER_ADDR", order.master_addr},
      {"MASTER_PORT", number(order.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", number(order.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", number(order.max_restarts)},
      {"TORCHELASTIC_RUN_ID", order.run_id},
      {"TESSERA_LAUNCHED", "1"},
      {"TESSERA_FAILURE_FILE", failure_path(order, local_rank)},
  };
  for (const auto& [name, value] : ours) variables[name] = value;
  return variables;
}

std::string socket_path(const std::string& folder) {
  return folder + "/socket";
}

std::string failure_path(const RankOrder& order, int local_rank) {
  return order.folder + "/failure-" + std::to_string(order.rank(local_rank)) + ".json";
}

std::string log_path(const RankOrder& order, int local_rank) {
  if (order.log_dir.empty()) return "";
  return (std::filesystem::path(order.log_dir) / ("rank-" + std::to_string(order.rank(local_rank)) + ".log")).string();
}

// MessagePack, since arguments and paths may be any bytes, where JSON's text must be UTF-8.
void write_order(const RankOrder& order) {
  std::string bytes;
  Json::to_msgpack(Json(order), bytes);
  write_file_atomically(order_path(order.folder), bytes);
}

RankOrder read_order(const std::string& folder) {
  auto order = Json::from_msgpack(read_file(order_path(folder))).get<RankOrder>();
  order.folder = folder;
  return order;
}

void remove_leftovers(const fs::path& temporary) noexcept {
  try {
    for (const fs::path& path : own_entries(temporary)) {
      if (path.filename().string().starts_with(RunFolder::kPrefix) && RunFolder::is_abandoned(path)) remove_tree(path);
    }
    remove_sessions(temporary);
    remove_shared_memory();
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
