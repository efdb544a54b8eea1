#include "listeners/wandb.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/file.h"
#include "core/log_record.h"
#include "listeners/proto_writer.h"
#include "listeners/run_recorder.h"

namespace tessera {
namespace {

// Fields of wandb_internal.proto. Items of history, summary and config have the same numbers.
constexpr int kRecordNum = 1, kRecordHistory = 2, kRecordSummary = 3, kRecordStats = 7, kRecordRun = 17,
              kRecordExit = 18, kRecordHeader = 21;
constexpr int kItemKey = 1, kItemNestedKey = 2, kItemValueJson = 16;
constexpr int kRunId = 1, kRunProject = 3, kRunConfig = 4, kRunDisplayName = 8, kRunHost = 13, kRunStartTime = 17;
constexpr int kItems = 1;  // of HistoryRecord, SummaryRecord and ConfigRecord
constexpr int kHistoryStep = 2, kHistoryStepNumber = 1;
constexpr int kStatsTimestamp = 2, kStatsItem = 3;

std::string random_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kNumLetters = 8;
  std::random_device device;  // not the run's seed: two runs with the same seed need two ids
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string id;
  for (int i = 0; i < kNumLetters; ++i) id += kLetters[letter(device)];
  return id;
}

ProtoWriter timestamp(double wall_seconds) {
  const auto seconds = static_cast<std::int64_t>(std::floor(wall_seconds));
  return ProtoWriter()
      .integer(1, seconds)
      .integer(2, static_cast<std::int64_t>((wall_seconds - static_cast<double>(seconds)) * 1e9));
}

// Values that are not numbers in JSON are written as W&B itself writes them.
std::string value_json(const LogValue& value) {
  const double* number = std::get_if<double>(&value);
  if (number == nullptr || std::isfinite(*number)) {
    return json_text(json_of(value));
  }
  return std::isnan(*number) ? "NaN" : *number > 0 ? "Infinity" : "-Infinity";
}

// A key as it is, dots and all.
ProtoWriter entry(const std::string& key, const std::string& json) {
  return ProtoWriter().text(kItemNestedKey, key).text(kItemValueJson, json);
}

constexpr std::uint64_t kBlockBytes = 32768;
constexpr std::uint64_t kHeaderBytes = 7;
enum PartType : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

void append_part(std::string& bytes, PartType type, std::string_view data) {
  std::string checked(1, type);
  checked += data;
  append_little_endian(bytes, crc32(checked));
  append_little_endian(bytes, static_cast<std::uint16_t>(data.size()));
  bytes += checked;
}

}  // namespace

WandbListener::WandbListener(WandbOptions options, const Json& config, std::string host)
    : options_(std::move(options)), config_(Json::object()), host_(std::move(host)) {
  if (options_.run_id.empty()) options_.run_id = random_id();
  for (const auto& [key, value] : config.items()) {
    if (!is_secret_name(key)) config_[key] = value;
  }
}

void WandbListener::on_train_begin(const RunMoment& at) {
  begun_ = at.wall_seconds;
  const auto time = fmt::localtime(static_cast<std::time_t>(at.wall_seconds));
  run_folder_ = options_.folder / "wandb" / fmt::format("offline-run-{:%Y%m%d_%H%M%S}-{}", time, options_.run_id);
  file_ = std::make_unique<WandbFile>(run_folder_ / fmt::format("run-{}.wandb", options_.run_id));
  std::filesystem::create_directories(run_folder_ / "files");

  const ProtoWriter version = ProtoWriter().text(1, "tessera").text(2, "0.40.0");
  write(kRecordHeader, ProtoWriter().message(1, version).bytes());
  ProtoWriter config;
  for (const auto& [key, value] : config_.items()) {
    const std::string json = json_text(value);
    config.message(kItems, ProtoWriter().text(kItemKey, key).text(kItemValueJson, json));
  }
  write(kRecordRun, ProtoWriter()
                        .text(kRunId, options_.run_id)
                        .text(kRunProject, options_.project)
                        .message(kRunConfig, config)
                        .text(kRunDisplayName, options_.name)
                        .text(kRunHost, host_)
                        .message(kRunStartTime, timestamp(at.wall_seconds))
                        .bytes());
}

void WandbListener::on_step_end(const RunMoment& at) {
  if (pending_at_ && pending_at_->step < at.step) write_pending();
}

void WandbListener::on_log(const RunMoment& at, const LogRecord& log) {
  for (const auto& [key, value] : log.entries()) add(at, metric_name(key), value);
}

void WandbListener::on_metrics(const RunMoment& at, const LogRecord& metrics) {
  for (const auto& [key, value] : metrics.entries()) add(at, key, value);
}

void WandbListener::on_system_metrics(const RunMoment& at, const LogRecord& metrics) {
  ProtoWriter message;
  message.message(kStatsTimestamp, timestamp(at.wall_seconds));
  for (const auto& [key, value] : metrics.entries()) {
    message.message(kStatsItem, ProtoWriter().text(kItemKey, key).text(kItemValueJson, value_json(value)));
  }
  write(kRecordStats, message.bytes());
}

void WandbListener::on_summary(const RunMoment&, const LogRecord& summary) {
  for (const auto& [key, value] : summary.entries()) summary_.set(key, value);
}

void WandbListener::on_train_end(const RunMoment& at, RunEnd end, const std::string&) {
  write_pending();
  summary_.set("_runtime", at.wall_seconds - begun_);
  ProtoWriter message;
  for (const auto& [key, value] : summary_.entries()) message.message(kItems, entry(key, value_json(value)));
  write(kRecordSummary, message.bytes());
  const bool went_well = end == RunEnd::kFinished || end == RunEnd::kStoppedEarly;
  const auto seconds = static_cast<std::int64_t>(at.wall_seconds - begun_);
  write(kRecordExit, ProtoWriter().integer(1, went_well ? 0 : 1).integer(2, seconds).bytes());
}

void WandbListener::add(const RunMoment& at, const std::string& key, const LogValue& value) {
  if (pending_at_ && pending_at_->step != at.step) write_pending();
  pending_at_ = at;
  pending_.set(key, value);
}

void WandbListener::write_pending() {
  if (!pending_at_) return;
  const RunMoment at = *pending_at_;
  LogRecord row = std::exchange(pending_, {});
  pending_at_.reset();
  row.set("_timestamp", at.wall_seconds);
  row.set("_runtime", at.wall_seconds - begun_);
  row.set("_step", at.step);
  ProtoWriter message;
  for (const auto& [key, value] : row.entries()) {
    message.message(kItems, entry(key, value_json(value)));
    summary_.set(key, value);
  }
  message.message(kHistoryStep, ProtoWriter().integer(kHistoryStepNumber, at.step));
  write(kRecordHistory, message.bytes());
}

void WandbListener::write(int field, const std::string& message) {
  if (!file_) return;  // it could not be opened, which was reported
  file_->append(ProtoWriter().integer(kRecordNum, ++num_records_).text(field, message).bytes());
}

WandbFile::WandbFile(const std::filesystem::path& path) : file_(path, AppendFile::Mode::kNew) {
  std::string header = ":W&B";
  append_little_endian(header, std::uint16_t{0xBEE1});
  header += '\0';
  file_.append(header);
  num_bytes_ = header.size();
}

void WandbFile::append(std::string_view record) {
  std::string bytes;
  bool is_first = true;
  do {
    std::uint64_t room = kBlockBytes - (num_bytes_ + bytes.size()) % kBlockBytes;
    if (room < kHeaderBytes) {  // no room for a header: pad with zeros and continue in the next block
      bytes.append(room, '\0');
      room = kBlockBytes;
    }
    const std::string_view data = record.substr(0, std::min<std::uint64_t>(record.size(), room - kHeaderBytes));
    record.remove_prefix(data.size());
    const bool is_last = record.empty();
    append_part(bytes, is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle), data);
    is_first = false;
  } while (!record.empty());
  file_.append(bytes);
  num_bytes_ += bytes.size();
}

}  // namespace tessera
