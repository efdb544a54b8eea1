// What every command declares, as data: completion and the man page are made from it.
//
// A command declares its settings while it runs, so each is run with --help and --help=markdown, and what it prints is
// read. That is the text that docs/settings.md is made of, too.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace tessera {

struct DescribedOption {
  enum class Takes { kNothing, kValue, kText };  // text may be the name of a file; a number or a listed word may not

  std::vector<std::string> names{};      // "--iters", "-n"
  Takes takes = Takes::kNothing;         // a boolean needs no value
  std::vector<std::string> values{};     // all that are allowed, if they are words
  std::vector<std::string> variables{};  // of the environment that set it, too
  std::string help{};
};

struct DescribedCommand {
  std::string name;  // "runs", "train bloom-qa"
  std::string summary;
  std::string usage;                 // "tessera runs [settings] ls|show|compare DIR..."
  std::vector<std::string> verbs{};  // words that may come first: ls, show, compare
  std::vector<DescribedOption> options{};
};

// In the order of `commands`. `train` is followed by one for each of its jobs.
std::vector<DescribedCommand> describe(const std::vector<Command>& commands);

}  // namespace tessera
