#include "settings/foreign_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace {

using Form = KeyRule::Form;
using Fate = KeyRule::Fate;

std::string joined(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

bool is_whole(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
}

// People write numbers and booleans as strings in such files: "true", as Python prints it or JSON does. Other words,
// such as "yes", mean different things to different readers.
std::optional<bool> bool_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_string()) return std::nullopt;
  const std::string word = lower_case(value.get<std::string>());
  return word == "true" ? std::optional(true) : word == "false" ? std::optional(false) : std::nullopt;
}

bool has_form(const Json& value, Form form) {
  switch (form) {
    case Form::kBool:
      return bool_of(value).has_value();
    case Form::kCount:
      return is_whole(value) && value.get<double>() >= 0;
    case Form::kPositive:
      return is_whole(value) && value.get<double>() >= 1;
    case Form::kNumber:
      return value.is_number() || (value.is_string() && parse_real(value.get<std::string>()));
    case Form::kText:
      return value.is_string();
    case Form::kSection:
      return value.is_object();
    case Form::kSectionOrBool:
      return value.is_object() || value.is_boolean();
    case Form::kAny:
      break;
  }
  return true;
}

const char* form_name(Form form) {
  static constexpr const char* kNames[] = {"true or false",
                                           "a whole number of at least 0",
                                           "a whole number of at least 1",
                                           "a number",
                                           "a string",
                                           "a value",
                                           "an object",
                                           "an object"};
  return kNames[static_cast<std::size_t>(form)];
}

class Walk {
 public:
  explicit Walk(const std::vector<KeyRule>& rules) : rules_(rules) {}

  ForeignConfig run(const JsonReader& root) {
    config_.origin = root.source().origin;
    visit_section("", root);
    return std::move(config_);
  }

 private:
  void visit_section(const std::string& section, const JsonReader& object) {
    for (const auto& [key, value] : object.members()) {
      const KeyRule* rule = find(section, key);
      if (rule == nullptr) refuse_unknown(section, key, value);
      if (!value.is_null()) visit(*rule, joined(section, key), value);
    }
  }

  void visit(const KeyRule& rule, const std::string& path, const JsonReader& value) {
    if (value.json() == "auto" && rule.form != Form::kText && rule.form != Form::kAny) {
      if (rule.takes_auto()) return;  // the setting keeps what the other sources give it
      value.refuse(fmt::format("expected {}; \"auto\" has no meaning here", form_name(rule.form)));
    }
    if (!has_form(value.json(), rule.form)) {
      value.refuse_value(std::string(form_name(rule.form)) + (rule.takes_auto() ? " or \"auto\"" : ""));
    }
    switch (rule.fate) {
      case Fate::kSetting:
        config_.values.push_back({rule.what, text_of(value.json()), path, value.place()});
        break;
      case Fate::kNoEffect:
        config_.without_effect.push_back(fmt::format("{} ({})", path, rule.what));
        break;
      case Fate::kOnly:
        if (text_of(value.json()) != text_of(Json::parse(rule.accepts))) {
          value.refuse(fmt::format("{} is not possible here: {}", shown(value.json()), rule.what));
        }
        break;
      case Fate::kOff:
        if (value.is_object() ? is_switched_off(value) : bool_of(value.json()) == false) break;
        value.refuse_key(fmt::format("not supported by Tessera: {}", rule.what));
      case Fate::kReader:
        if (value.is_object() && rule.form != Form::kAny) visit_section(path, value);
        break;
    }
  }

  // "auto" stands for what the trainer's arguments say, and no argument switches such a section on.
  static bool is_switched_off(const JsonReader& section) {
    if (section.json().empty()) return true;
    if (!section.json().contains("enabled")) return false;
    const JsonReader enabled = section.at("enabled");
    if (enabled.is_null() || enabled.json() == "auto") return true;
    const std::optional<bool> is_on = bool_of(enabled.json());
    if (!is_on) enabled.refuse_value(form_name(Form::kBool));
    return !*is_on;
  }

  const KeyRule* find(const std::string& section, const std::string& key) const {
    const auto found = std::ranges::find_if(
        rules_, [&](const KeyRule& rule) { return section == rule.section() && key == rule.key(); });
    return found == rules_.end() ? nullptr : &*found;
  }

  [[noreturn]] void refuse_unknown(const std::string& section, const std::string& key, const JsonReader& value) const {
    std::vector<std::string> here, elsewhere;
    for (const KeyRule& rule : rules_) {
      if (section == rule.section()) here.emplace_back(rule.key());
      if (key == rule.key()) elsewhere.emplace_back(rule.section());
    }
    std::string advice;
    if (const auto meant = nearest(key, here)) {
      advice = fmt::format("; did you mean {}?", *meant);
    } else if (!elsewhere.empty()) {
      const std::string& place = elsewhere.front();
      advice = fmt::format("; it belongs {}", place.empty() ? "at the top level" : "in " + place);
    }
    value.refuse_key("unknown key" + advice);
  }

  const std::vector<KeyRule>& rules_;
  ForeignConfig config_;
};

// As transformers accepts them: a path, or the JSON itself.
std::pair<std::string, std::string> origin_and_text(const char* option, const std::string& value) {
  if (trim(value).starts_with('{')) return {option, value};
  return {value, read_file(value)};
}

void apply_known(ForeignConfig config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes) {
  // Of what a command does not know, this alone changes what it shows: the memory.
  for (const ForeignValue& value : config.values) {
    if (schema.has("wrap") || value.setting != "wrap" || (value.text != "none" && value.text != "size")) continue;
    notes.push_back(fmt::format("{}: {} is not taken over: what is shown is for the model's own blocks (--wrap blocks)",
                                value.place, value.key));
  }
  std::erase_if(config.values, [&](const ForeignValue& value) { return !schema.has(value.setting); });
  apply(config, on_difference, schema, notes);
}

}  // namespace

ForeignFile::ForeignFile(std::string origin, std::string text, const std::string& prefix)
    : text_(std::move(text)), root_(parse_json(text_, origin)), source_{&root_, std::move(origin), text_} {
  if (!root_.is_object()) throw UsageError(fmt::format("{}: expected a JSON object of settings", source_.origin));
  if (prefix.empty()) return;
  Json plain = Json::object();  // in the order of the text, by which readers find places in it
  for (const auto& [key, value] : root().members()) {
    const std::string name = key.starts_with(prefix) ? key.substr(prefix.size()) : key;
    if (plain.contains(name)) {
      value.refuse_key(fmt::format("is the same as {}, which is already given", printable(name)));
    }
    plain[name] = value.json();
  }
  root_ = std::move(plain);
}

std::optional<JsonReader> ForeignFile::find(std::string_view path) const {
  std::optional<JsonReader> value = root();
  for (const std::string& key : split(path, '.')) {
    if (!value || !value->is_object()) return std::nullopt;
    value = value->find(key);
  }
  return value;
}

std::string ForeignFile::place_of(std::string_view path) const {
  if (const auto value = find(path)) return value->place();
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? root().place() : place_of(path.substr(0, dot));
}

ForeignConfig walk(const ForeignFile& file, const std::vector<KeyRule>& rules) {
  return Walk(rules).run(file.root());
}

std::string text_of(const Json& value) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    if (const std::optional<bool> flag = bool_of(value)) return *flag ? "true" : "false";
    return text;
  }
  // 5e8 is a whole number to people, though a float to JSON.
  constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
  if (value.is_number_float() && is_whole(value) && std::abs(value.get<double>()) <= kExactIntegers) {
    return fmt::format("{}", static_cast<std::int64_t>(value.get<double>()));
  }
  return json_text(value);
}

std::string number_type_of(const JsonReader& value) {
  std::string word = lower_case(value.as_text());
  if (word.starts_with("torch.")) word.erase(0, 6);
  if (word == "fp32" || word == "float32" || word == "float") return "fp32";
  if (word == "fp16" || word == "float16" || word == "half") return "fp16";
  if (word == "bf16" || word == "bfloat16" || word == "bfp16") return "bf16";
  value.refuse_value("fp32, fp16 or bf16");
}

void apply(const ForeignConfig& config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes) {
  for (const ForeignValue& value : config.values) {
    const Setting& setting = schema.at(value.setting);
    try {
      setting.parse(value.text);
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("{}: {}: {}, found {}", value.place, value.key, error.what(), printable(value.text)));
    }
    const bool differs = setting.source() >= Source::kJson && !setting.means_the_same(setting.text(), value.text);
    if (differs && value.is_default) continue;
    if (differs && setting.source() == Source::kCommandLine && on_difference == OnDifference::kYield) {
      notes.push_back(fmt::format("--{}={} (command line) overrides {}={} ({})", setting.name(), setting.text(),
                                  value.key, value.text, value.place));
      continue;
    }
    if (differs) {
      throw UsageError(fmt::format("{} is {} ({}) and {} ({}, {}): {}", setting.name(), setting.text(),
                                   setting.origin(), value.text, value.place, value.key,
                                   setting.source() == Source::kCommandLine && !config.origin.starts_with("--")
                                       ? "leave it out of the command line, or write \"auto\" or the same in the file"
                                       : "both mean the same setting; give one value"));
    }
    if (setting.is_set() && setting.source() < Source::kJson && !setting.means_the_same(setting.text(), value.text)) {
      notes.push_back(fmt::format("{0}={1} ({2}, {3}) overrides {0}={4} ({5})", setting.name(), value.text, value.place,
                                  value.key, setting.text(), setting.origin()));
    }
    schema.read_json(Json{{value.setting, value.text}}, fmt::format("{}: {}", config.origin, value.key));
  }
  if (!config.without_effect.empty()) {
    notes.push_back(
        fmt::format("{}: accepted, but without effect here: {}", config.origin, join(config.without_effect, ", ")));
  }
}

void declare(Schema& schema, ForeignFiles& files) {
  schema.text("deepspeed", &files.deepspeed, "DeepSpeed's ds_config.json: how the run is distributed, and more");
  schema.text("fsdp", &files.fsdp,
              "\"full_shard auto_wrap offload\": a strategy and its options; offload covers parameters and optimizer");
  schema.text("fsdp_config", &files.fsdp_config, "JSON file with the details of --fsdp");
}

void read_foreign_files(const ForeignFiles& files, Schema& schema, std::vector<std::string>& notes) {
  if (!files.deepspeed.empty() && (!files.fsdp.empty() || !files.fsdp_config.empty())) {
    throw UsageError("--deepspeed and --fsdp exclude each other; give one");
  }
  if (!files.deepspeed.empty()) {
    const auto [origin, text] = origin_and_text("--deepspeed", files.deepspeed);
    apply_known(read_ds_config(origin, text), OnDifference::kRefuse, schema, notes);
  }
  apply_known(read_fsdp_words(files.fsdp), OnDifference::kRefuse, schema, notes);
  if (!files.fsdp_config.empty()) {
    const auto [origin, text] = origin_and_text("--fsdp_config", files.fsdp_config);
    apply_known(read_fsdp_config(origin, text), OnDifference::kYield, schema, notes);
  }
}

}  // namespace tessera
