// A command of the program: its name, its settings, and what it does with them.
//
//   Command tokenize_command() {
//     return with_settings<TokenizeSettings>({.name = "tokenize", .summary = "texts to token ids and back"},
//                                            declare_tokenize, run_tokenize);
//   }
//
// Help, completion, the man page and docs/settings.md read what declare() tells a Schema; they run nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace tessera {

struct Command {
  std::string name;       // "runs", "train bloom-qa"
  std::string summary{};  // its line in the list of commands; empty: not for users
  std::string about{};    // the first line of its --help; empty: the summary
  bool has_rank = true;   // false: it is never one of several ranks, so its log lines name none
  std::function<void(Schema&)> declare{};
  std::function<int(const std::vector<std::string>& args)> run{};  // `args` follow the name; returns the exit status
  std::vector<Command> jobs{};                                     // of `train`: its first word names one of them

  // With all settings declared, and their presets.
  Schema schema() const;
};

// Reads the command line and handles --help and --print_config: false if one of them was asked for and printed.
// `read_more` reads other sources, after the command line and before --print_config shows the values.
bool read_settings(Schema& schema, const std::vector<std::string>& args, const std::function<void()>& read_more = {});

// The command `text` with settings in a struct of its own: `run` is called once they are read.
template <typename Settings>
Command with_settings(Command text, void (*declare)(Schema&, Settings&), int (*run)(Schema&, Settings&),
                      void (*read_more)(Schema&, Settings&) = nullptr) {
  text.declare = [declare](Schema& schema) { declare(schema, schema.keep<Settings>()); };
  text.run = [text, declare, run, read_more](const std::vector<std::string>& args) {
    Settings settings;
    Schema schema("tessera " + text.name, text.about.empty() ? text.summary : text.about);
    declare(schema, settings);
    const auto more = [&] {
      if (read_more != nullptr) read_more(schema, settings);
    };
    return read_settings(schema, args, more) ? run(schema, settings) : 0;
  };
  return text;
}

}  // namespace tessera
