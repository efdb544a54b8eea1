#include "data/templates/find_chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/json_reader.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using NamedTemplates = std::map<std::string, FoundTemplate>;

NamedTemplates templates_of_folder(const fs::path& folder) {
  NamedTemplates found;
  const auto read = [&](const std::string& name, const fs::path& path) {
    found[name] = {read_file(path), path.string()};
  };
  const fs::path single = folder / "chat_template.jinja", others = folder / "additional_chat_templates";
  if (is_file(single)) read("default", single);
  if (!is_folder(others)) return found;
  for (const auto& entry : fs::directory_iterator(others)) {
    if (entry.path().extension() == ".jinja" && is_file(entry.path())) read(entry.path().stem().string(), entry.path());
  }
  return found;
}

// The name "default" also stands for the only one, which has none.
NamedTemplates templates_of_config(const fs::path& folder, const Json& config) {
  const std::string origin = (folder / "tokenizer_config.json").string();
  const JsonSource source{&config, origin};
  const auto value = JsonReader(source).find("chat_template");
  if (!value) return {};
  if (value->is_string()) return {{"default", {value->as_text(), origin + ": chat_template"}}};
  NamedTemplates found;
  for (const JsonReader& each : value->items()) {
    const std::string name = each.text("name");
    found[name] = {each.text("template"), fmt::format("{}: chat_template \"{}\"", origin, printable(name, 60))};
  }
  return found;
}

// A text, or {"content": text}.
std::optional<std::string> token_text(const Json& tokens, const char* key) {
  if (!tokens.is_object()) return std::nullopt;
  Json token = tokens.value(key, Json());
  if (token.is_object()) token = Json(token.value("content", Json()));
  return token.is_string() ? std::optional(token.get<std::string>()) : std::nullopt;
}

}  // namespace

std::optional<FoundTemplate> find_chat_template(const fs::path& folder, const Json& tokenizer_config, bool has_tools) {
  NamedTemplates found = templates_of_folder(folder);
  if (found.empty()) found = templates_of_config(folder, tokenizer_config);
  if (found.empty()) return std::nullopt;
  if (has_tools && found.contains("tool_use")) return found["tool_use"];
  if (found.contains("default")) return found["default"];
  std::vector<std::string> names;
  for (const auto& [name, each] : found) names.push_back(name);
  throw UsageError(
      fmt::format("{}: none of the chat templates is named default; there are: {}", folder.string(), listed(names)));
}

Json special_token_texts(const fs::path& folder, const Json& tokenizer_config) {
  static constexpr std::array<const char*, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                        "pad_token", "cls_token", "mask_token"};
  const fs::path map = folder / "special_tokens_map.json";
  const Json others = is_file(map) ? read_json_file(map) : Json::object();
  Json texts = Json::object();
  for (const char* name : kNames) {
    auto text = token_text(others, name);
    if (!text) text = token_text(tokenizer_config, name);
    if (text) texts[name] = *text;
  }
  return texts;
}

Json messages_for_template(const Json& messages) {
  static constexpr std::array<const char*, 3> kReasoning = {"reasoning_content", "thinking", "reasoning"};
  Json prepared = Json::array();
  for (const Json& message : messages) {
    if (!message.is_object()) {
      prepared.push_back(message);
      continue;
    }
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    const auto reasoning =
        std::find_if(kReasoning.begin(), kReasoning.end(), [&](const char* name) { return kept.contains(name); });
    if (reasoning != kReasoning.end()) {
      const Json text = kept[*reasoning];
      if (!kept.contains("thinking")) {
        Json with_thinking = {{"thinking", text}};
        with_thinking.update(kept);
        kept = std::move(with_thinking);
      }
      kept["reasoning_content"] = text;
    }
    prepared.push_back(std::move(kept));
  }
  return prepared;
}

}  // namespace tessera
