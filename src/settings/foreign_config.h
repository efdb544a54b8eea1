// Reads another program's configuration file: which of our settings it gives, and which of its keys change nothing.
//
//   ForeignFile file("ds.json", text);                        // parsed; errors name line and column
//   ForeignConfig config = walk(file, rules);                 // every key has a rule, or is refused
//   apply(config, schema, ...);                               // values become settings, as JSON files give them
//
// A rule says what a key is and what happens to it. Where rules are not enough (two keys that make one setting), the
// format's own reader completes them: ds_config.cc, fsdp_config.cc. (no torch)
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/json_reader.h"

namespace tessera {

struct KeyRule {
  enum class Form { kBool, kCount, kPositive, kNumber, kText, kAny, kSection, kSectionOrBool };
  enum class Fate {
    kSetting,   // is the setting `what`
    kNoEffect,  // accepted with a note: `what` says why
    kOnly,      // only the value `accepts` (JSON text) is accepted; `what` says what to do instead
    kOff,       // a section that is accepted unless its "enabled" is true
    kReader,    // the format's reader handles it
  };
  std::string_view path;  // "zero_optimization.offload_param.device"
  Form form;
  Fate fate;
  const char* what = "";
  std::string_view accepts = "";  // auto: a setting may be left to the other sources

  std::string_view key() const { return path.substr(path.rfind('.') + 1); }  // npos + 1 is 0: the whole
  std::string_view section() const { return path.substr(0, std::max(path.size() - key().size(), std::size_t{1}) - 1); }
  bool takes_auto() const { return accepts == "auto"; }
};

// Another program's JSON file. Top-level keys may start with `prefix`, which is removed.
class ForeignFile {
 public:
  // `origin` is what messages call the file. Throws UsageError if the text is not a JSON object.
  ForeignFile(std::string origin, std::string text, const std::string& prefix = "");
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;

  JsonReader root() const { return JsonReader(source_); }
  // The value at "optimizer.params.lr"; nothing if the value or any part of its path is absent or null.
  std::optional<JsonReader> find(std::string_view path) const;
  // "ds.json:3:14", or the place of the innermost value on the way to it that exists.
  std::string place_of(std::string_view path) const;

 private:
  std::string text_;
  Json root_;
  JsonSource source_;
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
inline std::string text_of(const JsonReader& value) {
  return text_of(value.json());
}

// "fp32", "fp16" or "bf16" for "float32", "torch.float16", "BFLOAT16", "half" and the like; others are refused.
std::string number_type_of(const JsonReader& value);

// What happens to a file's value if the command line says something else.
enum class OnDifference { kRefuse, kYield };  // kYield: a note says so

// Gives the settings their values. If two files, or two keys of one file, differ, the refusal names both.
void apply(const ForeignConfig& config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes);

// DeepSpeed's ds_config.json. Every key on DeepSpeed's configuration page is known: it maps to a setting, has no effect
// here, or is refused with what to do instead. "auto", which Hugging Face's integration fills in, leaves a setting to
// the other sources. DeepSpeed's own defaults for absent keys (the loss scale's numbers) come with is_default. `origin`
// is what messages call the text, usually its path. Throws UsageError.
ForeignConfig read_ds_config(const std::string& origin, const std::string& text);
const std::vector<KeyRule>& ds_config_rules();

// PyTorch's FSDP as users of the Hugging Face Trainer ask for it: the words of --fsdp, "full_shard auto_wrap offload",
// and the file of --fsdp_config, whose keys may have the prefix "fsdp_". Both throw UsageError.
ForeignConfig read_fsdp_words(const std::string& words);
ForeignConfig read_fsdp_config(const std::string& origin, const std::string& text);
const std::vector<KeyRule>& fsdp_config_rules();

// --deepspeed, --fsdp and --fsdp_config.
struct ForeignFiles {
  std::string deepspeed, fsdp, fsdp_config;
};

void declare(Schema& schema, ForeignFiles& files);

// Gives the schema the values that it has settings for; notes say what was overruled and what has no effect. Call after
// the other sources are read. Throws UsageError.
void read_foreign_files(const ForeignFiles& files, Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
