// Renders chat templates for the scripts in tools/references: one JSON object per line in, one out.
//
//   in:  {"template": "...", "variables": {"messages": [...], ...}}    without "template": that of the line before
//   out: {"text": "...", "generated": [[begin, end], ...], "is_exact": true}    bytes of the text
//        {"error": "...", "is_refused_by_template": false}
#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <string>

#include "core/json.h"
#include "data/templates/chat_template.h"

namespace {

using tessera::Json;

Json answer_to(const Json& request, std::optional<tessera::ChatTemplate>& chat) {
  if (request.contains("template")) {
    chat.reset();
    chat = tessera::ChatTemplate::of_text(request["template"].get<std::string>(), "template");
  }
  if (!chat) throw tessera::UsageError("no template");
  const tessera::RenderedChat rendered = chat->render(request["variables"]);
  Json ranges = Json::array();
  for (const tessera::ByteRange& range : rendered.generated) ranges.push_back({range.begin, range.end});
  return {{"text", rendered.text}, {"generated", ranges}, {"is_exact", rendered.generated_is_exact}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::optional<tessera::ChatTemplate> chat;
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = answer_to(tessera::parse_json(line, "input"), chat);
    } catch (const tessera::ChatRefused& refusal) {
      answer = {{"error", refusal.what()}, {"is_refused_by_template", true}};
    } catch (const tessera::Error& error) {
      answer = {{"error", error.what()}, {"is_refused_by_template", false}};
    }
    std::cout << tessera::json_text(answer) << '\n';
  }
}
