// Drives load_train_settings() as the command does: words, environment, files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "jobs/jobs.h"
#include "settings/load.h"

namespace tessera {

class LoadTest : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  LoadTest() : folder_(std::filesystem::path(testing::TempDir()) / name_of_test()) {
    std::filesystem::create_directories(folder_);
  }
  ~LoadTest() override { std::filesystem::remove_all(folder_); }

  // Writes a test file and returns its path, which messages show.
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // A flag with the file that it names, and these words.
  Words with_file(const std::string& flag, const std::string& name, const std::string& text, const Words& words) const {
    Words all = {flag, file(name, text)};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  // bloom-qa with all that it needs, and these words.
  LoadedTrainSettings load(const Words& words) {
    Words all = {"bloom-qa", "--model_name_or_path=m", "--train_file=t.json", "--validation_file=v.json"};
    all.insert(all.end(), words.begin(), words.end());
    return load_as_is(all);
  }
  LoadedTrainSettings load_as_is(const Words& words) {
    return load_train_settings(
        {.jobs = job_traits(), .arguments = words, .environment = Environment(environment_), .num_ranks = num_ranks_});
  }

  // The message, without the folder of the test's files.
  std::string refusal(const Words& words) {
    return message([&] { load(words); });
  }
  std::string refusal_as_is(const Words& words) {
    return message([&] { load_as_is(words); });
  }

  std::string notes(const LoadedTrainSettings& loaded) const {
    std::string all;
    for (const std::string& note : loaded.notes) all += note + "\n";
    return without_folder(all);
  }
  static std::string value(const LoadedTrainSettings& loaded, const std::string& name) {
    return loaded.schema->at(name).text();
  }
  std::string origin(const LoadedTrainSettings& loaded, const std::string& name) const {
    return without_folder(loaded.schema->at(name).origin());
  }

  std::map<std::string, std::string> environment_;
  std::optional<int> num_ranks_ = 1;

 private:
  static std::string name_of_test() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("tessera_") + info->test_suite_name() + "_" + info->name();
  }
  template <typename Function>
  std::string message(Function function) const {
    try {
      function();
    } catch (const UsageError& error) {
      return without_folder(error.what());
    }
    return "accepted";
  }
  std::string without_folder(std::string text) const {
    const std::string prefix = folder_.string() + "/";
    for (std::size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
    return text;
  }

  std::filesystem::path folder_;
};

// Settings with a ds_config of this text.
class DsConfigTest : public LoadTest {
 protected:
  LoadedTrainSettings with(const std::string& json, const Words& words = {}) {
    return load(with_file("--deepspeed", "ds.json", json, words));
  }
  std::string refusal_with(const std::string& json, const Words& words = {}) {
    return refusal(with_file("--deepspeed", "ds.json", json, words));
  }
};

}  // namespace tessera
