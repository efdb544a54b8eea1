// The engine's options for a strategy, all else as it comes.
#pragma once

#include <string>

#include "parallel/engine.h"

namespace tessera {

inline EngineOptions options_of(const std::string& strategy) {
  EngineOptions options;
  options.spread.strategy = strategy;
  return options;
}

}  // namespace tessera
