// The pieces that several sections use, and the sections that are little more than their input.
#include "results/page/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/page/html.h"

namespace tessera {
namespace {

bool looks_like_number(const std::string& text) {
  return !text.empty() && (text == "-" || (text.find_first_of("0123456789") != std::string::npos &&
                                           text.find_first_not_of("0123456789.,+-e%() xGMKiB/s") == std::string::npos));
}

}  // namespace

std::string section(const std::string& id, const std::string& heading, const std::string& content) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, html_text(heading), content);
}

std::string figure(const std::string& svg, const std::string& caption) {
  const std::string below = caption.empty() ? "" : fmt::format("<figcaption>{}</figcaption>", html_text(caption));
  return fmt::format("<figure>{}{}</figure>\n", svg, below);
}

std::string run_link(const PageContent& page, std::size_t run) {
  const std::string name = html_text(page.runs[run].name);
  return run < page.num_sections ? fmt::format("<a href=\"#run-{}\">{}</a>", run, name) : name;
}

std::string badge(const std::string& state) {
  std::string words = state;
  std::replace(words.begin(), words.end(), '_', ' ');
  const bool is_good = state == "finished" || state == "stopped_early";
  const bool is_bad = state == "failed" || state == "killed";
  return fmt::format("<span class=\"badge {}\">{}</span>",
                     is_good  ? "good"
                     : is_bad ? "bad"
                              : "open",
                     html_text(words));
}

std::string page_table(const PageTable& table) {
  std::string out = fmt::format("<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr>",
                                html_text(table.title));
  for (const std::string& column : table.columns) out += "<th scope=\"col\">" + html_text(column) + "</th>";
  out += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* kind = i == 0 ? "<th scope=\"row\">" : looks_like_number(row[i]) ? "<td class=\"num\">" : "<td>";
      out += kind + html_text(row[i]) + (i == 0 ? "</th>" : "</td>");
    }
    out += "</tr>";
  }
  out += "</tbody></table></div>";
  for (const std::string& note : table.notes) out += "<p class=\"note\">" + html_text(note) + "</p>";
  return out + "\n";
}

std::vector<std::vector<std::size_t>> runs_by_job(const PageContent& page) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t run = 0; run < page.runs.size(); ++run) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& group) {
      return page.runs[group.front()].job == page.runs[run].job;
    });
    if (same == groups.end()) {
      groups.push_back({run});
    } else {
      same->push_back(run);
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return groups;
}

std::string tables_section(const PageContent& page) {
  std::string out;
  for (const PageTable& table : page.input.tables) out += page_table(table);
  return out.empty() ? "" : section("tables", "Tables", out);
}

std::string questions_section(const PageContent& page) {
  std::string out;
  for (const Answer& each : page.input.questions) {
    out +=
        fmt::format("<div class=\"question\"><h3>{}</h3><p>{}</p>", html_text(each.question), html_text(each.answer));
    if (!each.arithmetic.empty()) out += fmt::format("<pre>{}</pre>", html_text(each.arithmetic));
    out += "</div>\n";
  }
  return out.empty() ? "" : section("questions", "Questions and answers", out);
}

}  // namespace tessera
