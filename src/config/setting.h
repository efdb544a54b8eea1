// One setting: its names, the values it allows, its value and where that came from.
//
// Schema (schema.h) makes it. What a text means depends on the kind alone: parse() checks it, and the store that Schema
// passes in puts it where the component reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tessera {

struct DescribedOption;

// By rank: a value yields only to one from a source of the same or a higher rank.
enum class Source { kDefault, kEnvFile, kEnvironment, kJson, kCommandLine };

// What a declaration says about a setting besides its name, its member and its help; all of it may be left out.
struct SettingTraits {
  std::optional<std::string> preset{};          // the default, in the form that a user would write
  std::optional<double> at_least{}, at_most{};  // of numbers, sizes, durations (in seconds)
  std::vector<std::string> choices{};           // all that is allowed
  std::vector<std::string> aliases{};           // other long names: evaluation_strategy
  std::vector<std::string> environment{};       // variables that set it, too: LEARNING_RATE and LR
  char short_name = 0;                          // 'b' for -b
  // Texts with the same meaning are one value to whoever compares two sources: adamw_hf and adamw_torch.
  std::function<std::string(const std::string& text)> meaning{};
  bool is_list = false;    // several values, separated by commas; the component splits them
  bool is_secret = false;  // never printed: shown as "(set)"
  bool is_hidden = false;  // in no help and no table; printed only if a source has set it
};

class Setting {
 public:
  enum class Kind { kBool, kInteger, kReal, kText, kBytes, kDuration };
  using Value = std::variant<bool, std::int64_t, double, std::string, std::chrono::milliseconds>;
  using Store = std::function<void(const Value&)>;

  // `lowest` and `highest` are what the bound member can hold; the range that users see is that of `traits`. A preset
  // that is not allowed is a mistake of ours: Error, not UsageError.
  Setting(Kind kind, std::string name, Store store, SettingTraits traits = {}, std::string help = {},
          std::string group = {}, std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
          std::int64_t highest = std::numeric_limits<std::int64_t>::max());

  const std::string& name() const { return name_; }
  const std::string& group() const { return group_; }  // its heading in --help
  Source source() const { return source_; }
  bool is_secret() const { return traits_.is_secret; }
  bool is_hidden() const { return traits_.is_hidden; }
  bool is_set() const { return source_ != Source::kDefault; }  // by any source
  // The value as a user writes it, one form per value: "5e-05" for 0.00005, "4G" for 4096M, "true" for Yes. Empty if
  // neither a preset nor a source gave one; the bound member is then zero.
  const std::string& text() const { return text_; }
  // "default", "command line", "ds.json", "LR in the environment"
  const std::string& origin() const { return origin_; }

  bool means_the_same(const std::string& a, const std::string& b) const;

  // The text's value; otherwise throws UsageError "expected ..." (without the text, which may be secret).
  Value parse(const std::string& text) const;
  static std::string canonical(Kind kind, const Value& value);
  std::string allowed() const;     // "a whole number from 1 to 1000000"
  std::string shown_text() const;  // for print-outs: "(set)" for secrets, "(none)" if there is no value

 private:
  friend class Schema;

  // Of the kind: in the docs, in --help, in messages.
  struct Words {
    const char *type, *placeholder, *allowed;
  };

  const Words& words() const;
  void set(const Value& value, Source source, const std::string& origin);
  Value parse_whole_number(const std::string& text) const;
  std::string bounds() const;  // "1 to 1000000", "at least 1" or nothing
  std::string format_bound(double bound) const;
  std::string help_left() const;   // "  -n, --iters N"
  std::string help_right() const;  // "measured iterations [1 to 1000000; default 20]"
  std::string docs_row() const;
  std::vector<std::string> option_names() const;  // "--iters", "-n", "--num_iterations"
  DescribedOption described() const;

  Kind kind_;
  std::string name_, text_, origin_ = "default", help_;
  std::string group_;  // the heading in --help and in the docs
  SettingTraits traits_;
  std::int64_t lowest_, highest_;
  Source source_ = Source::kDefault;
  Store store_;
};

// true|t|yes|y|on|1 and their opposites, in any case, as Hugging Face reads them; nothing for any other word.
std::optional<bool> parse_bool(const std::string& text);

}  // namespace tessera
