// A subcommand of the program. main.cc has the list of all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tessera {

struct Command {
  std::string name;
  std::string summary;  // empty: not for users
  std::function<int(const std::vector<std::string>& args)> run;
};

}  // namespace tessera
