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
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Holds the host's name, written once it is locked: TMPDIR may be shared by hosts whose locks do not see each other.
constexpr const char* kLock = "/lock";

std::string order_path(const std::string& folder) {
  return folder + "/order.json";
}

// Arguments and paths are bytes, JSON holds UTF-8: anything but plain ASCII is written as %XX.
std::string to_escaped(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    if (byte < 0x80 && byte != '%') {
      text += static_cast<char>(byte);
    } else {
      text += fmt::format("%{:02X}", byte);
    }
  }
  return text;
}

std::string from_escaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
    } else {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
  }
  return bytes;
}

Json escaped(const std::vector<std::string>& words) {
  Json list = Json::array();
  for (const std::string& word : words) list.push_back(to_escaped(word));
  return list;
}

Json escaped(const std::map<std::string, std::string>& variables) {
  Json object = Json::object();
  for (const auto& [name, value] : variables) object[to_escaped(name)] = to_escaped(value);
  return object;
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
  std::error_code ignored;
  fs::remove_all(path_, ignored);
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

void write_order(const RankOrder& order) {
  const Json json = {{"command", escaped(order.command)},
                     {"node_rank", order.node_rank},
                     {"num_nodes", order.num_nodes},
                     {"num_local_ranks", order.num_local_ranks},
                     {"master_addr", to_escaped(order.master_addr)},
                     {"master_port", order.master_port},
                     {"run_id", to_escaped(order.run_id)},
                     {"restart_count", order.restart_count},
                     {"max_restarts", order.max_restarts},
                     {"environment", escaped(order.environment)},
                     {"cpus", order.cpus},
                     {"log_dir", to_escaped(order.log_dir)},
                     {"tee", order.tee}};
  write_file_atomically(order_path(order.folder), json.dump());
}

RankOrder read_order(const std::string& folder) {
  const Json json = read_json_file(order_path(folder));
  RankOrder order;
  order.folder = folder;
  for (const Json& word : json.at("command")) order.command.push_back(from_escaped(word));
  json.at("node_rank").get_to(order.node_rank);
  json.at("num_nodes").get_to(order.num_nodes);
  json.at("num_local_ranks").get_to(order.num_local_ranks);
  order.master_addr = from_escaped(json.at("master_addr"));
  json.at("master_port").get_to(order.master_port);
  order.run_id = from_escaped(json.at("run_id"));
  json.at("restart_count").get_to(order.restart_count);
  json.at("max_restarts").get_to(order.max_restarts);
  for (const auto& [name, value] : json.at("environment").items())
    order.environment[from_escaped(name)] = from_escaped(value);
  json.at("cpus").get_to(order.cpus);
  order.log_dir = from_escaped(json.at("log_dir"));
  json.at("tee").get_to(order.tee);
  return order;
}

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
