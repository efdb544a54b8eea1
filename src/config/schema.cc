#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

// Into a bound member, which is zero until then.
template <typename Held, typename T>
Setting::Store store_in(T* value) {
  *value = T();
  return [value](const Setting::Value& v) { *value = static_cast<T>(std::get<Held>(v)); };
}

// How the user can resolve a contradiction.
std::string advice_on_two(const Setting& setting, Source source) {
  if (source == Source::kEnvironment) return fmt::format("give --{}, or unset one", setting.name());
  return source == Source::kEnvFile ? fmt::format("give --{}, or take one out", setting.name()) : "give one";
}

const char* json_type(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return "a string";
  return value.is_boolean() ? "true or false" : "a number";
}

// The JSON value as a user would write it on the command line, or nothing if its type is not the setting's. Strings are
// taken for every kind: "32M", "True" and "5e-5" are what people write in such files.
std::optional<std::string> text_of(const Json& value, Setting::Kind kind) {
  if (value.is_string()) return value.get<std::string>();
  if (kind == Setting::Kind::kBool && value.is_boolean()) return value.get<bool>() ? "true" : "false";
  const bool takes_numbers = kind != Setting::Kind::kBool && kind != Setting::Kind::kText;
  if (!value.is_number() || !takes_numbers) return std::nullopt;
  // 5e8 is a whole number to people, though a float to JSON.
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (const double real = value.get<double>();
      value.is_number_float() && std::trunc(real) == real && std::abs(real) < kTwoTo63) {
    return fmt::format("{}", static_cast<std::int64_t>(real));
  }
  return value.dump();
}

// Command lines and variables may hold any bytes, JSON only UTF-8.
Json as_json(const std::string& text) {
  return Json::parse(json_text(Json(text)));
}

}  // namespace

Schema::Schema(std::string command, std::string summary) : command_(std::move(command)), summary_(std::move(summary)) {}

void Schema::boolean(const std::string& name, bool* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kBool, name, store_in<bool>(value), std::move(traits), std::move(help), group_);
}

void Schema::integer(const std::string& name, int* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kInteger, name, store_in<std::int64_t>(value), std::move(traits),
                         std::move(help), group_, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
}

void Schema::integer(const std::string& name, std::int64_t* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kInteger, name, store_in<std::int64_t>(value), std::move(traits),
                         std::move(help), group_);
}

void Schema::real(const std::string& name, double* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kReal, name, store_in<double>(value), std::move(traits), std::move(help),
                         group_);
}

void Schema::text(const std::string& name, std::string* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kText, name, store_in<std::string>(value), std::move(traits), std::move(help),
                         group_);
}

void Schema::word(const std::string& name, std::function<void(std::size_t place)> store,
                  const std::vector<std::string>& words, std::string help, SettingTraits traits) {
  store(0);
  traits.choices = words;
  const auto put = [words, store = std::move(store)](const Setting::Value& v) {
    store(static_cast<std::size_t>(std::ranges::find(words, std::get<std::string>(v)) - words.begin()));
  };
  settings_.emplace_back(Setting::Kind::kText, name, put, std::move(traits), std::move(help), group_);
}

void Schema::bytes(const std::string& name, std::int64_t* value, std::string help, SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kBytes, name, store_in<std::int64_t>(value), std::move(traits), std::move(help),
                         group_);
}

void Schema::duration(const std::string& name, std::chrono::milliseconds* value, std::string help,
                      SettingTraits traits) {
  settings_.emplace_back(Setting::Kind::kDuration, name, store_in<std::chrono::milliseconds>(value), std::move(traits),
                         std::move(help), group_);
}

void Schema::positionals(const std::string& description, std::vector<std::string>* words, bool rest) {
  positional_description_ = description;
  positionals_ = words;
  positionals_take_rest_ = rest;
  words->clear();
}

void Schema::read_json(const Json& object, const std::string& origin) {
  check_names();
  if (!object.is_object()) {
    throw UsageError(fmt::format("{}: expected an object of settings, found {}", origin, json_type(object)));
  }
  std::vector<Mention> mentions;
  for (const auto& [key, value] : object.items()) {
    Setting* setting = find(key);
    if (setting == nullptr) refuse_unknown(key, "", origin);
    const std::optional<std::string> text = text_of(value, setting->kind_);
    if (!text) {
      throw UsageError(
          fmt::format("{} ({}): expected {}, found {}", key, origin, setting->allowed(), json_type(value)));
    }
    mentions.push_back({setting, *text, origin, key});
  }
  assign(mentions, Source::kJson);
}

void Schema::read_environment(const Environment& environment) {
  read_variables(environment, Source::kEnvironment, "the environment");
}

void Schema::read_env_file(const Environment& variables, const std::string& origin) {
  read_variables(variables, Source::kEnvFile, origin);
}

void Schema::read_variables(const Environment& variables, Source source, const std::string& place) {
  check_names();
  std::vector<Mention> mentions;
  for (Setting& setting : settings_) {
    for (const std::string& name : setting.traits_.environment) {
      if (const std::optional<std::string> text = variables.find(name)) {
        mentions.push_back({&setting, *text, fmt::format("{} in {}", name, place), "--" + setting.name_});
      }
    }
  }
  assign(mentions, source);
}

std::vector<std::string> Schema::environment_names() const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) {
    names.insert(names.end(), setting.traits_.environment.begin(), setting.traits_.environment.end());
  }
  return names;
}

Json Schema::to_json() const {
  Json result = Json::object();
  for (const Setting* setting : shown()) {
    result[setting->name_] = as_json(setting->traits_.is_secret ? setting->shown_text() : setting->text_);
  }
  return result;
}

const Setting& Schema::at(const std::string& name) const {
  const Setting* setting = look_up(name);
  if (setting == nullptr) throw Error(fmt::format("{} has no setting {}", command_, name));
  return *setting;
}

void Schema::assign(const std::vector<Mention>& mentions, Source source) {
  struct Seen {
    const Mention* mention;
    Setting::Value value;
  };
  // By setting, then by name: in the order of the first mention.
  std::map<const Setting*, std::vector<Seen>> seen;
  for (const Mention& mention : mentions) {
    Setting::Value value;
    try {
      // Checked even if it yields: a wrong value is refused, never overlooked.
      value = mention.setting->parse(mention.text);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{} ({}): {}", as_written(mention), mention.origin, error.what()));
    }
    std::vector<Seen>& names = seen[mention.setting];
    const auto same_name = std::ranges::find_if(names, [&](const Seen& each) {
      return with_underscores(each.mention->name) == with_underscores(mention.name) &&
             each.mention->origin == mention.origin;
    });
    (same_name == names.end() ? names.emplace_back() : *same_name) = {&mention, value};
  }
  // A variable's name is in its origin.
  const auto shown = [&](const Mention& mention) {
    return source <= Source::kEnvironment ? value_for_messages(mention) : as_written(mention);
  };
  for (const Mention& mention : mentions) {
    Setting& setting = *mention.setting;
    if (setting.source_ > source) continue;
    const std::vector<Seen>& names = seen[&setting];
    const Seen& first = names.front();
    for (const Seen& other : names) {
      if (other.value == first.value) continue;  // '4G' and '4096M' do not contradict each other
      throw UsageError(fmt::format("{} is given twice with different values: {} ({}) and {} ({}); {}",
                                   first.mention->name, shown(*first.mention), first.mention->origin,
                                   shown(*other.mention), other.mention->origin, advice_on_two(setting, source)));
    }
    setting.set(first.value, source, first.mention->origin);
  }
}

std::string Schema::as_written(const Mention& mention) {
  const bool is_short = mention.name.starts_with('-') && !mention.name.starts_with("--");
  return fmt::format("{}{}{}", mention.name, is_short ? " " : "=", value_for_messages(mention));
}

std::string Schema::value_for_messages(const Mention& mention) {
  return mention.setting->traits_.is_secret ? "(secret)" : mention.text;
}

const Setting* Schema::look_up(const std::string& name) const {
  return const_cast<Schema*>(this)->find(name);
}

bool Schema::has(const std::string& name) const {
  return look_up(name) != nullptr;
}

Setting* Schema::find(const std::string& name) {
  const std::string wanted = with_underscores(name);
  const auto is_wanted = [&](const std::string& each) { return with_underscores(each) == wanted; };
  for (Setting& setting : settings_) {
    if (is_wanted(setting.name_) || std::ranges::any_of(setting.traits_.aliases, is_wanted)) return &setting;
  }
  return nullptr;
}

void Schema::refuse_unknown(const std::string& shown, const std::string& dashes, const std::string& origin) const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) {
    names.push_back(setting.name_);
    names.insert(names.end(), setting.traits_.aliases.begin(), setting.traits_.aliases.end());
    if (setting.kind_ == Setting::Kind::kBool && !dashes.empty()) names.push_back("no_" + setting.name_);
  }
  if (!dashes.empty()) names.insert(names.end(), {"help", "print_config"});
  const std::string word = with_underscores(shown.substr(std::min(shown.find_first_not_of('-'), shown.size())));
  const std::optional<std::string> meant = nearest(word, names);
  const std::string advice =
      meant ? fmt::format("did you mean {}{}?", dashes, *meant) : fmt::format("see {} --help", command_);
  throw UsageError(fmt::format("unknown setting {} ({}); {}", shown, origin, advice));
}

void Schema::check_names() const {
  std::set<std::string> taken = {"help", "print_config", "-h"};
  const auto take = [&](const std::string& name) {
    if (name.empty() || !taken.insert(with_underscores(name)).second) {
      throw Error(fmt::format("{}: the name '{}' is declared for two settings, or cannot be one", command_, name));
    }
  };
  for (const Setting& setting : settings_) {
    take(setting.name_);
    for (const std::string& alias : setting.traits_.aliases) take(alias);
    if (setting.traits_.short_name != 0) take(std::string("-") + setting.traits_.short_name);
  }
}

}  // namespace tessera
