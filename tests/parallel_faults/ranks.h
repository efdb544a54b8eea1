// Ranks as threads, each with the message that it ended with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/failure.h"
#include "parallel/engine.h"
#include "parallel/engine_options.h"
#include "tessera/world.h"

namespace tessera {

// By rank; "" for one that ended well.
inline std::vector<std::string> messages_of(int num_ranks, const std::function<void(World&)>& body) {
  std::vector<std::string> messages(static_cast<std::size_t>(num_ranks));
  WorldOptions options;
  options.comm_timeout = std::chrono::seconds(20);
  try {
    run_thread_ranks(num_ranks, options, [&](World& world) {
      try {
        body(world);
      } catch (const std::exception& error) {
        messages[static_cast<std::size_t>(world.rank())] = message_of(error);
        throw;
      }
    });
  } catch (const std::exception&) {
  }
  return messages;
}

}  // namespace tessera
