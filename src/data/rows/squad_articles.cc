#include "core/json_reader.h"
#include "data/rows/row_parser.h"

namespace tessera {

namespace {

bool is_squad_article(const Json& value) {
  const auto paragraphs = value.find("paragraphs");
  if (paragraphs == value.end() || !paragraphs->is_array() || paragraphs->empty()) return false;
  const Json& first = paragraphs->front();
  return first.is_object() && first.contains("qas");
}

}  // namespace

void add_rows_of(std::vector<PlacedRow>& rows, Json value, std::int64_t line, const std::string& place) {
  if (!is_squad_article(value)) {
    rows.push_back({std::move(value), line});
    return;
  }
  const JsonSource source{&value, place};
  const JsonReader article(source);
  for (const JsonReader& paragraph : article.at("paragraphs").items()) {
    const std::string context = paragraph.at("context").as_text();
    for (const JsonReader& question : paragraph.at("qas").items()) {
      rows.push_back({Json{{"id", question.label("id")},
                           {"title", article.label("title")},
                           {"context", context},
                           {"question", question.at("question").as_text()},
                           {"answers", question.at("answers").json()}},
                      line});
    }
  }
}

}  // namespace tessera
