#include "results/page/page.h"

#include <fmt/format.h>

#include "results/page/html.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

const char* const kPageStyle =
#include "results/page/assets/page.css"
    ;

const char* const kPageScript =
#include "results/page/assets/page.js"
    ;

// 100 runs of 1,000 steps fit into 5 MB: more runs, fewer points per curve.
std::size_t points_for(const PageContent& page) {
  return page.has_many() ? 84 : page.num_sections > 10 ? 200 : 400;
}

std::string head(const PageInput& input) {
  // The policy makes the browser itself refuse every request.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style></head>\n<body>\n",
      html_text(input.title), kPageStyle);
}

}  // namespace

std::string make_page(const PageInput& input) {
  PageContent page{input, figures_of(input.runs, input.now)};
  page.num_sections = std::min(input.runs.size(), kMostRunSections);
  page.most_points = points_for(page);
  struct Part {
    const char *id, *name;
    std::string html;
  };
  const std::vector<Part> parts = {{"summary", "Summary", summary_section(page)},
                                   {"runs", "Runs", run_table_section(page)},
                                   {"overview", overview_title(page), overview_section(page)},
                                   {"tables", "Tables", tables_section(page)},
                                   {"questions", "Questions", questions_section(page)},
                                   {"settings", "Settings", settings_section(page)},
                                   {"hardware", "Hardware", hardware_section(page)},
                                   {"each", "Each run", run_sections(page)}};
  std::string links, sections;
  for (const Part& part : parts) {
    if (!part.html.empty()) links += fmt::format("<a href=\"#{}\">{}</a>", part.id, part.name);
    sections += part.html;
  }
  std::string out = head(input);
  out += fmt::format(
      "<header><h1>{}</h1><nav aria-label=\"Sections\">{}</nav><button type=\"button\" id=\"theme\" title=\"Light or "
      "dark\">Theme</button></header>\n<main>\n",
      html_text(input.title), links);
  out += sections;
  out += fmt::format(
      "</main>\n<footer>Made by {}. MB, MiB and GiB are powers of 1024.</footer>\n<script>\n{}</script>\n"
      "</body></html>\n",
      html_text(input.generated_by), kPageScript);
  return out;
}

}  // namespace tessera
