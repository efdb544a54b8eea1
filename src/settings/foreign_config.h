// Reads another program's configuration file: which of our settings it gives, and which of its keys change nothing.
//
//   ForeignFile file("ds.json", text);                        // parsed; errors name line and column
//   ForeignConfig config = walk(file, rules);                 // every key has a rule, or is refused
//   apply(config, schema, ...);                               // values become settings, as JSON files give them
//
// A rule says what a key is and what happens to it. Where rules are not enough (two keys that make one setting), the
// format's own reader completes them: ds_config.h, fsdp_config.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/json.h"
#include "core/json_place.h"

namespace tessera {

struct KeyRule {
  enum class Form { kBool, kCount, kPositive, kNumber, kText, kAny, kSection, kSectionOrBool };
  enum class Fate {
    kSetting,   // is the setting `what`
    kNoEffect,  // accepted with a note: `what` says why
    kOnly,      // only the value `neutral` (JSON text) is accepted; `what` says what to do instead
    kOff,       // a section that is accepted unless its "enabled" is true
    kReader,    // the format's reader handles it
  };
  const char* section;  // "zero_optimization.offload_param"; "" for the top level
  const char* key;
  Form form;
  Fate fate;
  const char* what = "";
  bool takes_auto = false;
  const char* neutral = "";
};

class ForeignFile {
 public:
  // `origin` is what messages call the file. Top-level keys may start with `prefix`, which is removed. Throws
  // UsageError if the text is not a JSON object.
  ForeignFile(std::string origin, std::string text, const std::string& prefix = "");

  const std::string& origin() const { return origin_; }
  const Json& root() const { return root_; }
  // The value at "optimizer.params.lr"; null if the value or any part of its path is absent or null.
  const Json* find(std::string_view path) const;
  // "ds.json:3:14: optimizer.params.lr: <mistake>"
  [[noreturn]] void refuse_value(std::string_view path, const std::string& mistake) const;
  [[noreturn]] void refuse_key(std::string_view path, const std::string& mistake) const;
  std::string place_of_value(std::string_view path) const;  // "ds.json:3:14"

 private:
  void take_off(const std::string& prefix);
  JsonPath path_in_text(std::string_view path) const;

  std::string origin_, text_;
  Json root_;
  std::map<std::string, std::string> written_;  // top-level keys that had a prefix, as written in the file
};

struct ForeignValue {
  std::string setting, text;
  std::string key;          // as in the file: "optimizer.params.lr"
  std::string place;        // "ds.json:3:14"
  bool is_default = false;  // the other program's default, not in the file: yields silently to the command line
};

struct ForeignConfig {
  std::string origin;
  std::vector<ForeignValue> values;
  std::vector<std::string> without_effect;  // "overlap_comm: gathers always overlap"
};

// Throws UsageError on an unknown key (naming the nearest known one), a value of the wrong form, or a value that its
// rule does not allow. A null value counts as absent.
ForeignConfig walk(const ForeignFile& file, const std::vector<KeyRule>& rules);

// The JSON value as a user would write it on the command line.
std::string text_of(const Json& value);

// What happens to a file's value if the command line says something else.
enum class OnDifference { kRefuse, kYield };  // kYield: a note says so

// Gives the settings their values. If two files, or two keys of one file, differ, the refusal names both.
void apply(const ForeignConfig& config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
