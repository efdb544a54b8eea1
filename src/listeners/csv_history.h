// The metric history as CSV, one value per row: step,epoch,time,metric,value. A resumed run continues the file after
// its checkpoint's step; any other run starts a new file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/file.h"
#include "train/listener.h"

namespace tessera {

class CsvHistory : public TrainListener {
 public:
  // `continued_step`: the checkpoint's step, if the file is continued.
  CsvHistory(std::filesystem::path file, std::optional<std::int64_t> continued_step)
      : path_(std::move(file)), continued_step_(continued_step) {}

  std::string name() const override { return "CSV history"; }
  void on_train_begin(const RunMoment& at) override;
  void on_log(const RunMoment& at, const LogRecord& record) override;
  void on_metrics(const RunMoment& at, const LogRecord& record) override { add(at, record); }
  void on_system_metrics(const RunMoment& at, const LogRecord& record) override { add(at, record); }
  void on_summary(const RunMoment& at, const LogRecord& record) override { add(at, record); }

 private:
  void add(const RunMoment& at, const LogRecord& record);

  std::filesystem::path path_;
  std::optional<std::int64_t> continued_step_;
  std::unique_ptr<AppendFile> file_;
};

// Text as a cell: quoted if RFC 4180 requires it.
std::string csv_cell(const std::string& text);

}  // namespace tessera
