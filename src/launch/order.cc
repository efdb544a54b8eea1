#include "launch/order.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/file.h"

namespace tessera {
namespace {

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

}  // namespace

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

}  // namespace tessera
