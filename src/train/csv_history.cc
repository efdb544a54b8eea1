#include "train/csv_history.h"

#include <fmt/format.h>

#include "train/python_text.h"

namespace tessera {

namespace {

// Quoted where RFC 4180 asks for it.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string cell(const LogValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return cell(*text);
  if (std::holds_alternative<std::monostate>(value)) return "";
  return python_repr(value);
}

}  // namespace

void CsvHistory::on_train_begin(const RunMoment&) {
  file_ = std::make_unique<AppendFile>(path_, AppendFile::Mode::kContinue);
  if (file_->was_empty()) file_->append("step,epoch,time,metric,value\n");
}

void CsvHistory::on_log(const RunMoment& at, const LogRecord& record) {
  add(at, record, Names::kOfLogLine);
}

void CsvHistory::on_metrics(const RunMoment& at, const LogRecord& record) {
  add(at, record, Names::kAsTheyAre);
}

void CsvHistory::on_system_metrics(const RunMoment& at, const LogRecord& record) {
  add(at, record, Names::kAsTheyAre);
}

void CsvHistory::on_summary(const RunMoment& at, const LogRecord& record) {
  add(at, record, Names::kAsTheyAre);
}

void CsvHistory::add(const RunMoment& at, const LogRecord& record, Names names) {
  if (!file_) return;
  std::string rows;
  for (const auto& [key, value] : record.entries()) {
    if (names == Names::kOfLogLine && key == "epoch") continue;  // it has a column
    rows += fmt::format("{},{},{:.3f},{},{}\n", at.step, python_repr(at.epoch), at.wall_seconds,
                        cell(names == Names::kOfLogLine ? metric_name(key) : key), cell(value));
  }
  if (!rows.empty()) file_->append(rows);
}

}  // namespace tessera
