// Settings, each declared once.
//
// A component binds its settings to the members of a plain struct:
//
//   struct CommTestSettings { std::int64_t min_bytes; int num_iterations; };
//   void declare(Schema& schema, CommTestSettings& s) {
//     schema.group("Sizes");
//     schema.bytes("minbytes", &s.min_bytes, "smallest size", {.preset = "32M", .at_least = 1, .short_name = 'b'});
//     schema.group("How it is measured");
//     schema.integer("iters", &s.num_iterations, "timed calls", {.preset = "20", .at_least = 0, .short_name = 'n'});
//   }
//
// That one declaration serves the command line, JSON, the environment, env files, --help, --print_config with origins
// and the docs table. Sources may be read in any order: a value yields only to one from a source of the same or a
// higher rank (default < env file < environment < JSON < command line). Bound members must outlive the schema; they
// hold their presets (zero, false or "" without one) from the moment of declaration, and after each source is read the
// value that has won so far.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/setting.h"
#include "core/environment.h"
#include "core/json.h"

namespace tessera {

// An option as --help has it, for completion and the man page.
struct DescribedOption {
  enum class Takes { kNothing, kValue, kText };  // text may be the name of a file; a number or a listed word may not

  std::vector<std::string> names{};      // "--iters", "-n"
  Takes takes = Takes::kNothing;         // a boolean needs no value
  std::vector<std::string> values{};     // all that are allowed, if they are words
  std::vector<std::string> variables{};  // of the environment that set it, too
  std::string help{};
};

class Schema {
 public:
  // `command` is what help and messages call the program: "tessera comm-test"; `summary` says in one line what it does.
  Schema(std::string command, std::string summary);

  // The heading, in --help and in the docs, of all settings that are declared until the next; one that comes again
  // continues. Without one, or with "", they stand under "Settings".
  void group(const std::string& title) { group_ = title; }

  // SettingTraits (setting.h) say what else there is to say about a setting.
  void boolean(const std::string& name, bool* value, std::string help, SettingTraits traits = {});  // --fp16 [BOOL]
  void integer(const std::string& name, int* value, std::string help, SettingTraits traits = {});
  void integer(const std::string& name, std::int64_t* value, std::string help, SettingTraits traits = {});
  void real(const std::string& name, double* value, std::string help, SettingTraits traits = {});
  void text(const std::string& name, std::string* value, std::string help, SettingTraits traits = {});
  // One of some words, each standing for the enumerator of its place: {"auto", "on", "off"}.
  template <typename Enum>
  void word(const std::string& name, Enum* value, const std::vector<std::string>& words, std::string help,
            SettingTraits traits = {}) {
    const auto store = [value](std::size_t place) { *value = static_cast<Enum>(place); };
    word(name, store, words, std::move(help), std::move(traits));
  }
  void word(const std::string& name, std::function<void(std::size_t place)> store,
            const std::vector<std::string>& words, std::string help, SettingTraits traits = {});
  void bytes(const std::string& name, std::int64_t* value, std::string help, SettingTraits traits = {});  // '4G'
  void duration(const std::string& name, std::chrono::milliseconds* value, std::string help,
                SettingTraits traits = {});  // '30s'

  // What --help shows first: examples of the command, and the settings that are used most, in this order; names that
  // are not declared are skipped. `--help all` then shows everything. Without this, so does --help.
  void most_used(std::vector<std::string> names, std::vector<std::string> examples) {
    most_used_ = std::move(names);
    examples_ = std::move(examples);
  }

  // Words that are not options, in order: `tessera launch ... PROGRAM ARGS...`. With `rest` everything from the first
  // such word on is ignored, including options (as torchrun does).
  void positionals(const std::string& description, std::vector<std::string>* words, bool rest = false);

  // A T that lives as long as the schema: what settings are bound to if only their declarations matter.
  template <typename T>
  T& keep() {
    const auto made = std::make_shared<T>();
    kept_.push_back(made);
    return *made;
  }

  // Each throws UsageError on an unknown name (with the nearest right one), a value that its type, range or choices do
  // not allow, a missing value, or two names of one setting with different values (-n 10 --iters 20; RANK and
  // NODE_RANK) unless a higher source has already set it. The message names the setting as it was written, the value,
  // what is allowed and where the value came from. The same name twice on a command line is allowed: the last wins, for
  // wrappers that end in "$@"; --fp16 and --no_fp16 are one name.
  // Underscores and hyphens in names are the same: --comm_timeout, --comm-timeout. A value that yields to another
  // source's is still checked.
  // Returns false when help was asked for (-h, --help, --help all, --help=markdown) and has been printed: the caller
  // then exits.
  // --print_config only sets wants_print_config(), since other sources may still be read.
  bool read_command_line(const std::vector<std::string>& arguments);
  bool wants_print_config() const { return wants_print_config_; }
  void read_json(const Json& object, const std::string& origin);  // unknown keys are refused
  void read_environment(const Environment& environment);          // only the declared names are read
  // The variables from a file, which yield to those of the process. `origin` is what messages call the file.
  void read_env_file(const Environment& variables, const std::string& origin);
  std::vector<std::string> environment_names() const;  // of all settings

  std::string help_text(bool shows_all = true) const;
  std::string usage() const;  // "tessera runs [settings] ls|show|compare DIR...": without what explains the words
  std::vector<std::string> verbs() const;        // the words that may come first, if they are fixed: ls, show, compare
  std::vector<DescribedOption> options() const;  // those of --help, in its order
  // One line per setting: name, value, origin, aligned.
  std::string config_text() const;
  // Markdown: one table per group, under the group's title. `left_out`: rows that stand elsewhere.
  std::string docs_table(const std::set<std::string>& left_out = {}) const;
  std::set<std::string> docs_rows() const;
  // {"name": "value"}: for the rank comparison. Equal values have equal texts; secrets are "(set)" or "(none)". Leaves
  // out hidden settings that nothing has set.
  Json to_json() const;
  const Setting& at(const std::string& name) const;
  bool has(const std::string& name) const;                // also by another of its names
  const Setting* look_up(const std::string& name) const;  // the same; null: there is none
  std::vector<const Setting*> shown() const;              // those of --print_config, in its order

 private:
  class CommandLine;
  // One mention of a setting in a source, as it was written.
  struct Mention {
    Setting* setting;
    std::string text;
    std::string origin;
    std::string name;  // "--iters", "-n", "iters" in JSON; the setting's own for environment variables
  };

  void read_variables(const Environment& variables, Source source, const std::string& place);
  // Everything that one source mentions. For one name the last mention counts; two names must have the same value.
  void assign(const std::vector<Mention>& mentions, Source source);
  static std::string as_written(const Mention& mention);  // "--iters=10", "-n 10"; without a secret's value
  static std::string value_for_messages(const Mention& mention);
  Setting* find(const std::string& name);
  // Suggests the long name that a wrong one most likely meant; `dashes` is put before each.
  [[noreturn]] void refuse_unknown(const std::string& shown, const std::string& dashes,
                                   const std::string& origin) const;
  // Names declared for two settings, or that nobody could write: a mistake of ours, found when a source is read.
  void check_names() const;
  // Those of --help, under their headings.
  using Groups = std::vector<std::pair<std::string, std::vector<const Setting*>>>;
  Groups groups() const;
  Groups most_used_group() const;

  std::string command_, summary_, group_;
  std::list<Setting> settings_;  // stable addresses, order of declaration
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::string> most_used_, examples_;
  std::string positional_description_;
  std::vector<std::string>* positionals_ = nullptr;
  bool positionals_take_rest_ = false;
  bool wants_print_config_ = false;
};

}  // namespace tessera
