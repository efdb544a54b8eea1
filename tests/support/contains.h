// Looks for a part of a message; shows the whole message if it is missing.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tessera {

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << part << "\" in \"" << text << "\"";
}

}  // namespace tessera
