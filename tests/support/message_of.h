// What a call says that must be refused.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace tessera {

inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace tessera
