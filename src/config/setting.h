// One setting: its names, the values it allows, its value and where that came from.
//
// Schema (schema.h) makes it; the calls after its declaration describe it. What a text means depends on the kind alone:
// parse() checks it, and the store that Schema passes in puts it where the component reads it.
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

class Setting {
 public:
  enum class Kind { kBool, kInteger, kReal, kText, kBytes, kDuration };
  using Value = std::variant<bool, std::int64_t, double, std::string, std::chrono::milliseconds>;
  using Store = std::function<void(const Value&)>;

  // `lowest` and `highest` are what the bound member can hold; the range that users see is range()'s.
  Setting(Kind kind, std::string name, Store store, std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
          std::int64_t highest = std::numeric_limits<std::int64_t>::max());

  // A preset that is not allowed (whatever the order of these calls) is a mistake of ours: Error, not UsageError.
  Setting& preset(const std::string& text);       // the default, in the form that a user would write
  Setting& short_name(char letter);               // -b
  Setting& alias(const std::string& name);        // another long name: --evaluation_strategy
  Setting& environment(const std::string& name);  // may be given several times: LEARNING_RATE and LR
  Setting& range(double low, double high);        // both ends allowed; for numbers, sizes, durations (in seconds)
  Setting& at_least(double low);
  Setting& choices(std::vector<std::string> allowed);
  Setting& help(const std::string& text);
  Setting& group(const std::string& title);  // the heading in --help and in the docs
  // Texts with the same meaning are one value to whoever compares two sources: adamw_hf and adamw_torch.
  Setting& meaning(std::function<std::string(const std::string& text)> of);
  Setting& list();    // several values, separated by commas; the component splits them
  Setting& secret();  // never printed: shown as "(set)"
  Setting& hidden();  // in no help and no table; printed only if a source has set it

  const std::string& name() const { return name_; }
  Source source() const { return source_; }
  bool is_secret() const { return secret_; }
  bool is_hidden() const { return hidden_; }
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
  std::string bounds() const;      // "1 to 1000000", "at least 1" or nothing
  std::string shown_text() const;  // for print-outs: "(set)" for secrets, "(none)" if there is no value

 private:
  friend class Schema;

  void set(const Value& value, Source source, const std::string& origin);
  void check_preset() const;
  Value parse_integer_value(const std::string& text) const;
  void check_bounds(double value) const;
  void check_choice(const std::string& text) const;
  std::string format_bound(double bound) const;
  std::string help_left() const;   // "  -n, --iters N"
  std::string help_right() const;  // "measured iterations [1 to 1000000; default 20]"
  std::string docs_row() const;
  std::vector<std::string> option_names() const;  // "--iters", "-n", "--num_iterations"
  DescribedOption described() const;

  Kind kind_;
  std::string name_, text_, origin_ = "default", help_, group_, preset_;
  std::vector<std::string> aliases_, environment_names_, choices_;
  std::optional<double> low_, high_;
  std::int64_t lowest_, highest_;
  char short_name_ = 0;
  bool is_list_ = false;
  bool secret_ = false;
  bool hidden_ = false;
  bool has_preset_ = false;
  Source source_ = Source::kDefault;
  std::function<std::string(const std::string&)> meaning_;
  Store store_;
};

// true|t|yes|y|on|1 and their opposites, in any case, as Hugging Face reads them; nothing for any other word.
std::optional<bool> parse_bool(const std::string& text);

}  // namespace tessera
