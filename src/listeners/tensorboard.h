// Metrics for TensorBoard: one event file, readable while it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "train/listener.h"

namespace tessera {

// output_dir/runs/Nov15_09-00-00_host: where transformers puts it.
std::filesystem::path default_logging_dir(const std::filesystem::path& output_dir, double wall_seconds,
                                          const std::string& host);

class EventFile {
 public:
  // `folder`/events.out.tfevents.<seconds>.<host>.<process>.0
  EventFile(const std::filesystem::path& folder, double wall_seconds, const std::string& host);

  struct Scalar {
    std::string tag;
    double value = 0;
  };
  void add_scalars(std::int64_t step, double wall_seconds, const std::vector<Scalar>& scalars);
  void add_text(const std::string& tag, const std::string& markdown, double wall_seconds);

 private:
  void add_event(const std::string& event);

  AppendFile file_;
};

class TensorBoardListener : public TrainListener {
 public:
  // `settings` is shown as the text 'args', as transformers shows its arguments.
  TensorBoardListener(std::filesystem::path folder, std::string host, std::string settings)
      : folder_(std::move(folder)), host_(std::move(host)), settings_(std::move(settings)) {}

  std::string name() const override { return "TensorBoard"; }
  void on_train_begin(const RunMoment& at) override;
  void on_log(const RunMoment& at, const LogRecord& record) override { add(at.step, at, record, metric_name); }
  void on_metrics(const RunMoment& at, const LogRecord& record) override { add(at.step, at, record, as_is); }
  // Against the epoch, so that curves of runs on different numbers of GPUs align.
  void on_epoch_metrics(const RunMoment& at, std::int64_t epoch, const LogRecord& record) override {
    add(epoch, at, record, as_is);
  }
  void on_system_metrics(const RunMoment& at, const LogRecord& record) override { add(at.step, at, record, as_system); }
  void on_summary(const RunMoment& at, const LogRecord& record) override { add(at.step, at, record, as_is); }

 private:
  using Naming = std::string (*)(const std::string&);
  static std::string as_is(const std::string& key) { return key; }
  static std::string as_system(const std::string& key) { return "system/" + key; }
  void add(std::int64_t place, const RunMoment& at, const LogRecord& record, Naming naming);

  std::filesystem::path folder_;
  std::string host_, settings_;
  std::unique_ptr<EventFile> file_;
};

std::uint32_t crc32c(std::string_view bytes);

// TFRecord files store it rotated and shifted, so that checksums of data that contains checksums stay meaningful.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tessera
