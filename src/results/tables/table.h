// A table as data, and its forms: Markdown, CSV, HTML and aligned text. (no torch)
//
// A cell is a number with its text, a text, or missing with the reason. A missing cell is shown as '-' and its reason
// below the table, before the notes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct TableColumn {
  std::string name, unit;  // "Runtime", "s"
  bool is_text = false;    // aligned to the left
};

struct TableCell {
  std::optional<double> value;  // unrounded
  std::string text;             // as shown; empty: missing
  std::string reason;           // why it is missing
};

struct Table {
  std::string name, title;
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> rows;  // a cell per column; the first says what the row is
  std::vector<std::string> notes;
};

TableCell number_cell(double value, int digits);
TableCell text_cell(std::string text);
TableCell missing_cell(std::string reason);

// Rows become columns: for tables with few rows and many columns. Units move into the first column.
Table transposed(const Table& table);

// "4 GPUs: no finished run", one per row and reason; without those of whole rows named twice.
std::vector<std::string> reasons_below(const Table& table);

std::string column_heading(const TableColumn& column);  // "Runtime (s)"

std::string table_markdown(const Table& table);
std::string table_csv(const Table& table);   // numbers unrounded; title, reasons and notes as lines that begin with '#'
std::string table_html(const Table& table);  // <figure> ... </figure>, for a page of its own or a part of one
std::string table_text(const Table& table);  // for a terminal

// Text for a cell of Markdown: one line; '|' would end it, and Markdown may hold HTML.
std::string markdown_escaped(std::string_view text);

}  // namespace tessera
