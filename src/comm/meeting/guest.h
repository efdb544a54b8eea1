// What a process says about itself when it joins a meeting, and what it learns about the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/host.h"
#include "core/json.h"

namespace tessera {

struct Guest {
  int rank = 0;
  int world_size = 1;
  std::string host{};
  std::int64_t pid = 0;
  std::string version{};                          // of Tessera and torch: must be the same on all
  std::map<std::string, std::string> settings{};  // must be the same on all
  int node_rank = -1;                             // -1: unknown, derived from the hosts
};

Json to_json(const Guest& guest);
// Throws ProtocolError if a field is missing or out of its range.
Guest guest_from_json(const Json& json);

// Versions of Tessera and torch, which must be the same on all ranks: "tessera 0.1.0, torch 2.11.0".
std::string version_text();

}  // namespace tessera
