// A file in another program's words, told in ours: which settings it gives, and what it says that changes nothing.
//
//   ForeignFile file("ds.json", text);                        // parsed; mistakes are told by line and column
//   ForeignConfig config = walk(file, rules);                 // every key has a rule, or is refused
//   apply(config, schema, ...);                               // values become settings of rank JSON
//
// A rule says what a key is and what becomes of it. Rules that are not enough (two keys that make one setting) are
// completed by the reader of the format: ds_config.h, fsdp_config.h.
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
  enum class Form { kBool, kCount, kNumber, kText, kAny, kSection, kSectionOrBool };
  enum class Fate {
    kSetting,   // is the setting `what`
    kNoEffect,  // accepted with a line: `what` says why
    kOnly,      // only the value `neutral` (JSON text) is; `what` says what to do instead
    kOff,       // a section that is accepted where its "enabled" is not true
    kReader,    // the format's reader looks at it
  };
  const char* section;  // "zero_optimization.offload_param"; "" for the outermost
  const char* key;
  Form form;
  Fate fate;
  const char* what = "";
  bool takes_auto = false;
  const char* neutral = "";
};

class ForeignFile {
 public:
  // `origin` is what messages call it. Outermost keys may have `prefix` before them; it is taken off. Throws UsageError
  // where the text is no JSON object.
  ForeignFile(std::string origin, std::string text, const std::string& prefix = "");

  const std::string& origin() const { return origin_; }
  const Json& root() const { return root_; }
  // The value at "optimizer.params.lr"; none where a part of the way, or the value, is absent or null.
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
  std::map<std::string, std::string> written_;  // outermost keys that had a prefix, as the text has them
};

struct ForeignValue {
  std::string setting, text;
  std::string key;          // in the words of the file: "optimizer.params.lr"
  std::string place;        // "ds.json:3:14"
  bool is_default = false;  // the file does not say it, its program would do it: yields to a command line in silence
};

struct ForeignConfig {
  std::string origin;
  std::vector<ForeignValue> values;
  std::vector<std::string> without_effect;  // "overlap_comm: gathers always overlap"
};

// Throws UsageError on a key without a rule (naming the nearest that has one), a value of another form, or one that a
// rule does not let pass. null is as if the key were absent.
ForeignConfig walk(const ForeignFile& file, const std::vector<KeyRule>& rules);

// The JSON value as a user would write it on the command line.
std::string text_of(const Json& value);

// What a value of rank JSON does where the command line says something else.
enum class OnDifference { kRefuse, kYield };  // kYield: a note says so

// Gives the settings their values. Two files, or two keys of one, that differ are refused with both.
void apply(const ForeignConfig& config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
