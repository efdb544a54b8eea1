#include "listeners/csv_history.h"

#include <fmt/format.h>

#include "core/file.h"
#include "core/log_record.h"
#include "core/text.h"

namespace tessera {

namespace {

std::string value_cell(const LogValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return csv_cell(*text);
  if (std::holds_alternative<std::monostate>(value)) return "";
  return python_repr(value);
}

// Steps after the checkpoint run again, so their rows are dropped. So is what follows the last whole row: the run was
// killed, or the disk was full, while it was written. A line's end within quotes belongs to a cell.
std::string rows_up_to(std::int64_t step, const std::string& text) {
  std::string kept;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') is_quoted = !is_quoted;
    if (text[i] != '\n' || is_quoted) continue;
    const std::string row = text.substr(begin, i + 1 - begin);
    begin = i + 1;
    const auto number = parse_integer(row.substr(0, row.find(',')));
    if (row != "\n" && (!number || *number <= step)) kept += row;
  }
  return kept;
}

}  // namespace

void CsvHistory::on_train_begin(const RunMoment&) {
  std::string kept;
  if (continued_step_ && std::filesystem::is_regular_file(path_)) {
    const std::string text = read_file(path_);
    kept = rows_up_to(*continued_step_, text);
    if (kept != text) write_file_atomically(path_, kept);
  }
  file_ = std::make_unique<AppendFile>(path_, kept.empty() ? AppendFile::Mode::kReplace : AppendFile::Mode::kContinue);
  if (kept.empty()) file_->append("step,epoch,time,metric,value\n");
}

void CsvHistory::on_log(const RunMoment& at, const LogRecord& record) {
  LogRecord metrics;
  for (const auto& [key, value] : record.entries()) {
    if (key != "epoch") metrics.set(metric_name(key), value);  // it has a column
  }
  add(at, metrics);
}

void CsvHistory::add(const RunMoment& at, const LogRecord& record) {
  if (!file_) return;
  std::string rows;
  for (const auto& [key, value] : record.entries()) {
    rows += fmt::format("{},{},{:.3f},{},{}\n", at.step, python_repr(at.epoch), at.wall_seconds, csv_cell(key),
                        value_cell(value));
  }
  if (!rows.empty()) file_->append(rows);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

}  // namespace tessera
