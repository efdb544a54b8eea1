#include "results/tables/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "listeners/console_text.h"
#include "listeners/csv_history.h"
#include "record/run_record.h"
#include "results/page/html.h"

namespace tessera {
namespace {

const std::string kMissing = "-";

std::string shown(const TableCell& cell) {
  return cell.text.empty() ? kMissing : cell.text;
}

using Fields = std::vector<std::string>;

Fields headings_of(const Table& table) {
  Fields headings;
  for (const TableColumn& column : table.columns) headings.push_back(column_heading(column));
  return headings;
}

Fields shown_fields(const std::vector<TableCell>& row) {
  Fields fields;
  for (const TableCell& cell : row) fields.push_back(shown(cell));
  return fields;
}

std::vector<std::string> lines_below(const Table& table) {
  std::vector<std::string> lines = reasons_below(table);
  lines.insert(lines.end(), table.notes.begin(), table.notes.end());
  return lines;
}

std::string one_line(std::string text) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  return text;
}

std::string padded(const std::string& text, std::size_t width, bool is_left) {
  const std::string blanks(width - std::min(width, num_characters(text)), ' ');
  return is_left ? text + blanks : blanks + text;
}

std::string joined_columns(const std::vector<std::string>& fields, const std::vector<std::size_t>& widths,
                           const Table& table) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    line += (i == 0 ? "" : "  ") + padded(fields[i], widths[i], i == 0 || table.columns[i].is_text);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

TableCell number_cell(double value, int digits) {
  return {value, fmt::format("{:.{}f}", value, digits), ""};
}

TableCell text_cell(std::string text) {
  return {std::nullopt, std::move(text), ""};
}

TableCell missing_cell(std::string reason) {
  return {std::nullopt, "", std::move(reason)};
}

Table transposed(const Table& table) {
  Table turned{table.name, table.title, {{"", "", true}}, {}, table.notes};
  for (const auto& row : table.rows) turned.columns.push_back({shown(row.front()), "", false});
  for (std::size_t column = 1; column < table.columns.size(); ++column) {
    std::vector<TableCell> cells = {text_cell(column_heading(table.columns[column]))};
    for (const auto& row : table.rows) cells.push_back(row[column]);
    turned.rows.push_back(std::move(cells));
  }
  // A row that is missing altogether would be named once per line: name it once.
  std::vector<std::string> missing_rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto& cells = table.rows[row];
    const bool is_all_missing = std::all_of(cells.begin() + 1, cells.end(), [&](const TableCell& cell) {
      return cell.text.empty() && cell.reason == cells[1].reason;
    });
    if (cells.size() < 2 || !is_all_missing) continue;
    missing_rows.push_back(fmt::format("{}: {}", shown(cells.front()), cells[1].reason));
    for (auto& line : turned.rows) line[row + 1].reason.clear();
  }
  turned.notes.insert(turned.notes.begin(), missing_rows.begin(), missing_rows.end());
  return turned;
}

std::vector<std::string> reasons_below(const Table& table) {
  std::vector<std::string> lines;
  for (const auto& row : table.rows) {
    std::vector<std::pair<std::string, std::vector<std::string>>> columns_by_reason;
    std::size_t num_given = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].text.empty()) ++num_given;
      if (!row[i].text.empty() || row[i].reason.empty()) continue;
      value_beside(columns_by_reason, row[i].reason).push_back(table.columns[i].name);
    }
    for (const auto& [reason, columns] : columns_by_reason) {
      const bool is_whole_row = columns_by_reason.size() == 1 && columns.size() > num_given;
      lines.push_back(is_whole_row ? fmt::format("{}: {}", shown(row.front()), reason)
                                   : fmt::format("{}, {}: {}", shown(row.front()), join(columns, ", "), reason));
    }
  }
  return lines;
}

std::string column_heading(const TableColumn& column) {
  return column.unit.empty() ? column.name : fmt::format("{} ({})", column.name, column.unit);
}

std::string table_markdown(const Table& table) {
  std::string text = table.title.empty() ? "" : fmt::format("**{}**\n\n", markdown_escaped(table.title));
  const auto add_line = [&](const std::vector<std::string>& fields) {
    text += "|";
    for (const std::string& field : fields) text += " " + markdown_escaped(field) + " |";
    text += "\n";
  };
  add_line(headings_of(table));
  text += "|";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    text += i == 0 || table.columns[i].is_text ? " --- |" : " ---: |";
  }
  text += "\n";
  for (const auto& row : table.rows) add_line(shown_fields(row));
  const std::vector<std::string> below = lines_below(table);
  if (!below.empty()) text += "\n";
  for (const std::string& line : below) text += "- " + markdown_escaped(line) + "\n";
  return text;
}

std::string table_csv(const Table& table) {
  std::string text = table.title.empty() ? "" : "# " + one_line(table.title) + "\n";
  const auto add_line = [&](Fields fields) {
    for (std::string& field : fields) field = csv_cell(field);
    text += join(fields, ",") + "\n";
  };
  add_line(headings_of(table));
  for (const auto& row : table.rows) {
    Fields fields;
    for (const TableCell& cell : row) fields.push_back(cell.value ? fmt::format("{}", *cell.value) : shown(cell));
    add_line(std::move(fields));
  }
  for (const std::string& line : lines_below(table)) text += "# " + one_line(line) + "\n";
  return text;
}

std::string table_html(const Table& table) {
  std::string text = "<figure class=\"table\">\n";
  if (!table.title.empty()) text += fmt::format("<figcaption>{}</figcaption>\n", html_text(table.title));
  text += "<table>\n<thead><tr>";
  for (const std::string& heading : headings_of(table)) {
    text += fmt::format("<th scope=\"col\">{}</th>", html_text(heading));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const TableCell& cell = row[i];
      if (i == 0) {
        text += fmt::format("<th scope=\"row\">{}</th>", html_text(shown(cell)));
        continue;
      }
      const std::string kind = table.columns[i].is_text ? "" : " class=\"number\"";
      const std::string reason = cell.reason.empty() ? "" : fmt::format(" title=\"{}\"", html_text(cell.reason));
      text += fmt::format("<td{}{}>{}</td>", kind, reason, html_text(shown(cell)));
    }
    text += "</tr>\n";
  }
  text += "</tbody>\n</table>\n";
  const std::vector<std::string> below = lines_below(table);
  if (!below.empty()) {
    text += "<ul class=\"notes\">\n";
    for (const std::string& line : below) text += fmt::format("<li>{}</li>\n", html_text(line));
    text += "</ul>\n";
  }
  return text + "</figure>\n";
}

std::string table_text(const Table& table) {
  std::vector<Fields> lines = {headings_of(table)};
  for (const auto& row : table.rows) {
    Fields& fields = lines.emplace_back(shown_fields(row));
    for (std::string& field : fields) field = printable(field);
  }
  std::vector<std::size_t> widths(table.columns.size());
  for (const Fields& fields : lines) {
    for (std::size_t i = 0; i < fields.size(); ++i) widths[i] = std::max(widths[i], num_characters(fields[i]));
  }
  std::string text = table.title.empty() ? "" : table.title + "\n\n";
  for (const Fields& fields : lines) text += joined_columns(fields, widths, table);
  const std::vector<std::string> below = lines_below(table);
  if (!below.empty()) text += "\n";
  for (const std::string& line : below) text += printable(line, 1000) + "\n";
  return text;
}

std::string markdown_escaped(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '<') {
      escaped += "&lt;";
    } else if (letter == '\n' || letter == '\r') {
      escaped += ' ';
    } else {
      if (letter == '|' || letter == '\\' || letter == '`') escaped += '\\';
      escaped += letter;
    }
  }
  return escaped;
}

}  // namespace tessera
