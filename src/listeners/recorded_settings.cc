#include "listeners/recorded_settings.h"

#include <fmt/format.h>

#include "core/log_json.h"

namespace tessera {
namespace {

// Sizes and durations stay as users write them: 4G, 30s.
LogValue typed_value(const Setting& setting) {
  if (setting.is_secret() || setting.text().empty()) return {};
  const Setting::Value value = setting.parse(setting.text());
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const double* real = std::get_if<double>(&value)) return *real;
  const std::int64_t* whole = std::get_if<std::int64_t>(&value);
  if (whole != nullptr && setting.text() == std::to_string(*whole)) return *whole;
  return setting.text();
}

std::string text_of_value(const LogValue& value) {
  const Json json = json_of(value);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

}  // namespace

std::vector<RecordedSetting> recorded_settings(const Schema& schema, const LogRecord& decided) {
  std::vector<RecordedSetting> all;
  for (const Setting* setting : schema.shown()) {
    RecordedSetting recorded{setting->name(), setting->shown_text(), setting->origin(), typed_value(*setting)};
    const LogValue* made = decided.find(setting->name());
    if (made != nullptr && text_of_value(*made) != setting->text()) {
      recorded.origin = fmt::format("decided by the run, {} ({})", setting->shown_text(), setting->origin());
      recorded.value = text_of_value(*made);
      recorded.typed = *made;
    }
    all.push_back(std::move(recorded));
  }
  return all;
}

Json settings_json(const std::vector<RecordedSetting>& settings) {
  Json config = Json::object();
  for (const RecordedSetting& setting : settings) config[setting.name] = json_of(setting.typed);
  return config;
}

}  // namespace tessera
