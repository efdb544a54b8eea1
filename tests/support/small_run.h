// Replays the made-up run of tests/data/train/events.json to listeners, and provides a folder to write in.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/log_record.h"
#include "support/train_references.h"
#include "train/listener.h"

namespace tessera {

inline RunMoment moment_of(const Json& json) {
  return {json.at("step"), json.at("total_steps"), json.at("epoch"), json.at("wall_seconds")};
}

inline void tell_small_run(Listeners& listeners) {
  for (const Json& each : train_reference("events.json", "run")) {
    const std::string event = each.at("event");
    const RunMoment at = moment_of(each.at("at"));
    const LogRecord record = each.contains("record") ? log_record_of(each.at("record"), "events.json") : LogRecord();
    if (event == "begin") listeners.on_train_begin(at);
    if (event == "step") listeners.on_step_end(at);
    if (event == "log") listeners.on_log(at, record);
    if (event == "metrics") listeners.on_metrics(at, record);
    if (event == "system") listeners.on_system_metrics(at, record);
    if (event == "summary") listeners.on_summary(at, record);
    if (event == "end") listeners.on_train_end(at, RunEnd::kFinished, "");
  }
}

// The bytes of a list of lines of hexadecimal digits.
inline std::string bytes_of(const Json& lines) {
  std::string bytes;
  for (const Json& line : lines) {
    const std::string digits = line;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
  }
  return bytes;
}

// A folder per test, removed afterwards. If $TESSERA_EVENT_FILES is set, it is below that folder and kept, for scripts
// that read our files with the original readers.
class WithFolder : public testing::Test {
 protected:
  void SetUp() override {
    const char* kept = std::getenv("TESSERA_EVENT_FILES");
    is_kept_ = kept != nullptr;
    const std::filesystem::path parent =
        is_kept_ ? std::filesystem::path(kept) : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "tessera_train_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (!is_kept_) std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
  bool is_kept_ = false;
};

}  // namespace tessera
