#include "data/rows/row_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr const char* kFunctionCall = "function_call";

struct ShareGptRole {
  const char* from;
  const char* role;
};
constexpr std::array<ShareGptRole, 11> kShareGptRoles = {{{"human", "user"},
                                                          {"user", "user"},
                                                          {"gpt", "assistant"},
                                                          {"assistant", "assistant"},
                                                          {"chatgpt", "assistant"},
                                                          {"bing", "assistant"},
                                                          {"bard", "assistant"},
                                                          {"system", "system"},
                                                          {kFunctionCall, "assistant"},
                                                          {"observation", "tool"},
                                                          {"tool", "tool"}}};

// Those that templates of today's families know.
const std::vector<std::string>& chat_roles() {
  static const std::vector<std::string> roles = {"system", "developer", "user",        "assistant",
                                                 "tool",   "function",  "observation", "ipython"};
  return roles;
}

[[noreturn]] void refuse_turn(const std::string& place, const std::string& mistake) {
  throw UsageError(fmt::format("{}: {}", place, mistake));
}

void drop_nulls(Json& value) {
  if (value.is_array()) {
    for (Json& item : value) drop_nulls(item);
  } else if (value.is_object()) {
    Json kept = Json::object();
    for (auto& [key, member] : value.items()) {
      if (member.is_null()) continue;
      drop_nulls(member);
      kept[key] = std::move(member);
    }
    value = std::move(kept);
  }
}

const std::string& text_member(const Json& turn, const char* key, const std::string& place) {
  const auto found = turn.find(key);
  if (found == turn.end()) refuse_turn(fmt::format("{}.{}", place, key), "is missing");
  if (!found->is_string()) {
    refuse_turn(fmt::format("{}.{}", place, key), fmt::format("expected a text, found {}", shown(*found)));
  }
  return found->get_ref<const std::string&>();
}

Json parse_stored_json(const std::string& text, const std::string& place) {
  try {
    return parse_json(text, "");
  } catch (const UsageError& error) {  // ":1:7: expected ..."
    refuse_turn(place, fmt::format("its text is not JSON, at {}", error.what() + 1));
  }
}

// {"name": "weather", "arguments": {"city": "Rome"}}, or a list of them, as the value of a turn.
Json calls_in(const std::string& value, const std::string& place) {
  Json calls = parse_stored_json(value, place);
  if (calls.is_object()) calls = Json::array({std::move(calls)});
  Json tool_calls = Json::array();
  for (Json& call : calls) {
    const bool is_call = call.is_object() && call.contains("name") && call["name"].is_string();
    if (!is_call) {
      refuse_turn(place, "expected a call such as {\"name\": \"weather\", \"arguments\": {...}}, found " + shown(call));
    }
    tool_calls.push_back({{"type", "function"}, {"function", std::move(call)}});
  }
  if (tool_calls.empty()) refuse_turn(place, "expected a call of a function, found none");
  return tool_calls;
}

Json read_share_gpt(const Json& turn, const std::string& place) {
  const std::string& from = text_member(turn, "from", place);
  const std::string& value = text_member(turn, "value", place);
  const auto found = std::ranges::find_if(kShareGptRoles, [&](const ShareGptRole& role) { return role.from == from; });
  if (found == kShareGptRoles.end()) {
    refuse_turn(place + ".from",
                fmt::format("expected one of {}, found \"{}\"",
                            join(texts_of(kShareGptRoles, &ShareGptRole::from), ", "), printable(from, 40)));
  }
  if (found->from != kFunctionCall) return message(found->role, value);
  return {{"role", found->role}, {"tool_calls", calls_in(value, place + ".value")}};
}

Json read_chat_message(const Json& turn, const std::string& place) {
  const std::string& role = text_member(turn, "role", place);
  if (std::ranges::find(chat_roles(), role) == chat_roles().end()) {
    refuse_turn(place + ".role", fmt::format("expected one of {}, found \"{}\"{}", join(chat_roles(), ", "),
                                             printable(role, 40), did_you_mean(role, chat_roles())));
  }
  Json kept = Json::object();
  for (const auto& [key, value] : turn.items()) {
    const bool is_content = key == "content";
    if (is_content && !value.is_null() && !value.is_string() && !value.is_array()) {
      refuse_turn(place + ".content", fmt::format("expected a text, a list or null, found {}", shown(value)));
    }
    if (key == "tool_calls" && !value.is_null() && !value.is_array()) {
      refuse_turn(place + ".tool_calls", fmt::format("expected a list, found {}", shown(value)));
    }
    if (value.is_null() && !is_content) continue;
    kept[key] = value;
    if (!is_content) drop_nulls(kept[key]);
  }
  if (!kept.contains("content") && !kept.contains("tool_calls")) refuse_turn(place + ".content", "is missing");
  return kept;
}

}  // namespace

Json message(const char* role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Json read_messages(const Json& turns, const std::string& place) {
  if (!turns.is_array()) refuse_turn(place, fmt::format("expected a list of turns, found {}", shown(turns)));
  if (turns.empty()) refuse_turn(place, "expected at least one turn, found none");
  Json messages = Json::array();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Json& turn = turns[i];
    const std::string turn_place = fmt::format("{}[{}]", place, i);
    if (!turn.is_object()) refuse_turn(turn_place, fmt::format("expected an object, found {}", shown(turn)));
    const bool is_share_gpt = turn.contains("from") && !turn.contains("role");
    messages.push_back(is_share_gpt ? read_share_gpt(turn, turn_place) : read_chat_message(turn, turn_place));
  }
  return messages;
}

void add_system_text(Json& messages, const std::string& text) {
  const bool has_one = !messages.empty() && messages.front().at("role") == "system";
  if (text.empty() || has_one) return;
  messages.insert(messages.begin(), message("system", text));
}

Json read_tools(const Json& value, const std::string& place) {
  Json tools = value;
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (trim(text).empty()) return nullptr;
    tools = parse_stored_json(text, place);
  }
  if (tools.is_null()) return nullptr;
  if (!tools.is_array()) refuse_turn(place, fmt::format("expected a list of tools, found {}", shown(tools)));
  if (value.is_array()) drop_nulls(tools);  // a text has no more members than its writer gave it
  return tools;
}

}  // namespace tessera
