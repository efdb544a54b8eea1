#include "comm/meeting/guest.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "comm/meeting/packet.h"
#include "core/version.h"

namespace tessera {
namespace {

constexpr int kLargestWorld = 1 << 20;
constexpr std::size_t kMostNameBytes = 255;

std::int64_t number_of(const Json& json, const char* name, std::int64_t low, std::int64_t high) {
  const auto value = json.at(name).get<std::int64_t>();
  if (!json.at(name).is_number_integer() || value < low || value > high) {
    throw ProtocolError(fmt::format("{} is out of its range", name));
  }
  return value;
}

std::string name_in(const Json& json, const char* name) {
  std::string text = json.at(name).get<std::string>();
  if (text.empty() || text.size() > kMostNameBytes) throw ProtocolError(fmt::format("{} has a wrong length", name));
  return text;
}

}  // namespace

Json to_json(const Guest& guest) {
  return {
      {"rank", guest.rank},       {"world_size", guest.world_size}, {"host", guest.host},          {"pid", guest.pid},
      {"version", guest.version}, {"settings", guest.settings},     {"node_rank", guest.node_rank}};
}

Guest guest_from_json(const Json& json) {
  try {
    const auto world_size = static_cast<int>(number_of(json, "world_size", 1, kLargestWorld));
    return {.rank = static_cast<int>(number_of(json, "rank", 0, world_size - 1)),
            .world_size = world_size,
            .host = name_in(json, "host"),
            .pid = number_of(json, "pid", 1, std::int64_t{1} << 32),
            .version = name_in(json, "version"),
            .settings = json.at("settings").get<std::map<std::string, std::string>>(),
            .node_rank = static_cast<int>(number_of(json, "node_rank", -1, kLargestWorld))};
  } catch (const Json::exception& error) {
    throw ProtocolError(error.what());
  }
}

std::string version_text() {
  return fmt::format("tessera {}, torch {}", kVersion, TORCH_VERSION);
}

}  // namespace tessera
