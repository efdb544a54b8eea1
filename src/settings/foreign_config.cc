#include "settings/foreign_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/json_mistake.h"
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
  switch (form) {
    case Form::kBool:
      return "true or false";
    case Form::kCount:
      return "a whole number of at least 0";
    case Form::kPositive:
      return "a whole number of at least 1";
    case Form::kNumber:
      return "a number";
    case Form::kText:
      return "a string";
    case Form::kSection:
    case Form::kSectionOrBool:
      return "an object";
    case Form::kAny:
      break;
  }
  return "a value";
}

std::string shown(const Json& value) {
  return printable(json_text(value), 60);
}

class Walk {
 public:
  Walk(const ForeignFile& file, const std::vector<KeyRule>& rules) : file_(file), rules_(rules) {
    config_.origin = file.origin();
  }

  ForeignConfig run() {
    visit_section("", file_.root());
    return std::move(config_);
  }

 private:
  void visit_section(const std::string& section, const Json& object) {
    for (const auto& [key, value] : object.items()) {
      const KeyRule* rule = find(section, key);
      if (rule == nullptr) refuse_unknown(section, key);
      if (!value.is_null()) visit(*rule, joined(section, key), value);
    }
  }

  void visit(const KeyRule& rule, const std::string& path, const Json& value) {
    if (value == "auto" && rule.form != Form::kText && rule.form != Form::kAny) {
      if (rule.takes_auto) return;  // the setting keeps what the other sources give it
      file_.refuse_value(path, fmt::format("expected {}; \"auto\" has no meaning here", form_name(rule.form)));
    }
    if (!has_form(value, rule.form)) {
      const char* or_auto = rule.takes_auto ? " or \"auto\"" : "";
      file_.refuse_value(path, fmt::format("expected {}{}, found {}", form_name(rule.form), or_auto, shown(value)));
    }
    switch (rule.fate) {
      case Fate::kSetting:
        config_.values.push_back({rule.what, text_of(value), path, file_.place_of_value(path)});
        break;
      case Fate::kNoEffect:
        config_.without_effect.push_back(fmt::format("{} ({})", path, rule.what));
        break;
      case Fate::kOnly:
        if (text_of(value) != text_of(Json::parse(rule.neutral))) {
          file_.refuse_value(path, fmt::format("{} is not possible here: {}", shown(value), rule.what));
        }
        break;
      case Fate::kOff:
        check_off(rule, path, value);
        break;
      case Fate::kReader:
        if (value.is_object() && rule.form != Form::kAny) visit_section(path, value);
        break;
    }
  }

  void check_off(const KeyRule& rule, const std::string& path, const Json& value) const {
    if (value.is_object() ? is_switched_off(path, value) : bool_of(value) == false) return;
    file_.refuse_key(path, fmt::format("not supported by Tessera: {}", rule.what));
  }

  // "auto" stands for what the trainer's arguments say, and no argument switches such a section on.
  bool is_switched_off(const std::string& path, const Json& section) const {
    if (section.empty()) return true;
    if (!section.contains("enabled")) return false;
    const Json& enabled = section.at("enabled");
    if (enabled.is_null() || enabled == "auto") return true;
    const std::optional<bool> is_on = bool_of(enabled);
    if (!is_on) {
      file_.refuse_value(joined(path, "enabled"),
                         fmt::format("expected {}, found {}", form_name(Form::kBool), shown(enabled)));
    }
    return !*is_on;
  }

  const KeyRule* find(const std::string& section, const std::string& key) const {
    const auto found = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const KeyRule& rule) { return section == rule.section && key == rule.key; });
    return found == rules_.end() ? nullptr : &*found;
  }

  [[noreturn]] void refuse_unknown(const std::string& section, const std::string& key) const {
    std::vector<std::string> here, elsewhere;
    for (const KeyRule& rule : rules_) {
      if (section == rule.section) here.emplace_back(rule.key);
      if (key == rule.key) elsewhere.emplace_back(rule.section);
    }
    std::string advice;
    if (const auto meant = nearest(key, here)) {
      advice = fmt::format("; did you mean {}?", *meant);
    } else if (!elsewhere.empty()) {
      const std::string& place = elsewhere.front();
      advice = fmt::format("; it belongs {}", place.empty() ? "at the top level" : "in " + place);
    }
    file_.refuse_key(joined(section, key), "unknown key" + advice);
  }

  const ForeignFile& file_;
  const std::vector<KeyRule>& rules_;
  ForeignConfig config_;
};

}  // namespace

ForeignFile::ForeignFile(std::string origin, std::string text, const std::string& prefix)
    : origin_(std::move(origin)), text_(std::move(text)) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  root_ = parse_json(text_, origin_);
  if (!root_.is_object()) throw UsageError(fmt::format("{}: expected a JSON object of settings", origin_));
  if (!prefix.empty()) take_off(prefix);
}

void ForeignFile::take_off(const std::string& prefix) {
  Json plain = Json::object();
  for (const auto& [key, value] : root_.items()) {
    const bool has_prefix = key.starts_with(prefix);
    const std::string name = has_prefix ? key.substr(prefix.size()) : key;
    if (plain.contains(name))
      refuse_key(key, fmt::format("is the same as {}, which is already given", printable(name)));
    plain[name] = value;
    if (has_prefix) written_[name] = key;
  }
  root_ = std::move(plain);
}

JsonPath ForeignFile::path_in_text(std::string_view path) const {
  JsonPath steps;
  for (std::string& step : split(path, '.')) steps.emplace_back(std::move(step));
  if (const auto found = written_.find(std::get<std::string>(steps.front())); found != written_.end()) {
    steps.front() = found->second;
  }
  return steps;
}

const Json* ForeignFile::find(std::string_view path) const {
  const Json* value = &root_;
  for (const std::string& key : split(path, '.')) {
    if (!value->is_object()) return nullptr;
    const auto found = value->find(key);
    if (found == value->end()) return nullptr;
    value = &*found;
  }
  return value->is_null() ? nullptr : value;
}

std::string ForeignFile::place_of_value(std::string_view path) const {
  const internal::TextPosition at = internal::position_of(text_, offset_of(text_, path_in_text(path)));
  return fmt::format("{}:{}:{}", origin_, at.line, at.column);
}

void ForeignFile::refuse_value(std::string_view path, const std::string& mistake) const {
  throw UsageError(fmt::format("{}: {}: {}", place_of_value(path), printable(path), mistake));
}

void ForeignFile::refuse_key(std::string_view path, const std::string& mistake) const {
  const internal::TextPosition at = internal::position_of(text_, key_offset_of(text_, path_in_text(path)));
  throw UsageError(fmt::format("{}:{}:{}: {}: {}", origin_, at.line, at.column, printable(path), mistake));
}

ForeignConfig walk(const ForeignFile& file, const std::vector<KeyRule>& rules) {
  return Walk(file, rules).run();
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

}  // namespace tessera
