#include "results/tables/table_page.h"

#include <fmt/format.h>

#include "results/page/html.h"

namespace tessera {
namespace {

std::string answer_list(const std::vector<Answer>& answers) {
  std::string list;
  for (const Answer& answer : answers) {
    const std::string said = answer.why_not.empty() ? answer.answer : "cannot be answered: " + answer.why_not;
    list += fmt::format("<dt>{}</dt><dd>{}<br><small>{}</small></dd>\n", html_text(answer.question), html_text(said),
                        html_text(answer.arithmetic));
  }
  return list.empty() ? "" : "<dl>\n" + list + "</dl>\n";
}

}  // namespace

std::string table_page(const Table& table, const std::vector<Answer>& answers) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<style>body{{font-family:sans-serif}}table{{border-collapse:collapse}}th,td{{border:1px solid #999;"
      "padding:.2em .6em;text-align:left}}td.number{{text-align:right}}</style></head>\n<body>\n{}{}</body></html>\n",
      html_text(table.title), table_html(table), answer_list(answers));
}

}  // namespace tessera
