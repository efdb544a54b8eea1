// A W&B run that stays on this machine: `wandb sync FOLDER` uploads it later, from any machine with a network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/file.h"
#include "core/json.h"
#include "train/listener.h"

namespace tessera {

// A W&B run file (run-<id>.wandb): records of Protocol Buffers in blocks, in LevelDB's log format with zlib's checksum.
//
// Seven bytes of header (":W&B", 0xBEE1, version 0), then blocks of 32 KiB. A record is checksum (of type and data),
// length, type and data; one that does not fit in the rest of a block continues in the next. When append() returns, the
// record has been handed to the system, so that a killed run can be synchronised up to there.
class WandbFile {
 public:
  explicit WandbFile(const std::filesystem::path& path);

  void append(std::string_view record);
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
  std::uint64_t num_bytes_ = 0;
};

struct WandbOptions {
  std::filesystem::path folder = ".";  // gets wandb/offline-run-<time>-<id>
  std::string run_id;                  // lower-case letters and digits; empty: a random one
  std::string project = "huggingface";
  std::string name;
};

class WandbListener : public TrainListener {
 public:
  // `config`: an object of settings; those with a secret's name are left out.
  WandbListener(WandbOptions options, const Json& config, std::string host);

  std::string name() const override { return "W&B"; }
  void on_train_begin(const RunMoment& at) override;
  void on_step_end(const RunMoment& at) override;
  void on_log(const RunMoment& at, const LogRecord& record) override;
  void on_metrics(const RunMoment& at, const LogRecord& record) override;
  void on_system_metrics(const RunMoment& at, const LogRecord& record) override;
  void on_summary(const RunMoment& at, const LogRecord& record) override;
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;

  // wandb/offline-run-..., once the run has started.
  const std::filesystem::path& run_folder() const { return run_folder_; }

 private:
  // All metrics of one step are one row of W&B's history: kept until the step is over.
  void add(const RunMoment& at, const std::string& key, const LogValue& value);
  void write_pending();
  void write(int field, const std::string& message);

  WandbOptions options_;
  Json config_;
  std::string host_;
  std::filesystem::path run_folder_;
  std::unique_ptr<WandbFile> file_;
  std::int64_t num_records_ = 0;
  double begun_ = 0;
  std::optional<RunMoment> pending_at_;
  LogRecord pending_, summary_;
};

}  // namespace tessera
