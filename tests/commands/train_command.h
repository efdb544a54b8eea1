// Small runs of `tessera train` as users start them: a tiny model on a sample of SQuAD, alone and on several ranks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json.h"
#include "support/log_lines.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {

inline const std::string kTestData = TESSERA_TEST_DATA_FOLDER;
inline const std::string kTestRows = kTestData + "/squad/sample.jsonl";
inline const std::string kTestTokenizer = kTestData + "/squad/tokenizer";
inline const std::string kTestConfig = kTestData + "/train_command/bloom.json";

class TrainCommandTest : public ::testing::Test {
 protected:
  TrainCommandTest() {
    ::setenv("OMP_NUM_THREADS", "1", 1);
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  }

  std::string out(const std::string& name) const { return (folder_ / name).string(); }
  Json record(const std::string& name) const { return read_json_file(folder_ / name / "run.json"); }

  // The words after `tessera` for a run into output folder `name`. bloom-qa: 16 rows, 2 rows x 2 micro-steps.
  std::string bloom_words(const std::string& name, const std::string& more) const {
    return fmt::format(
        "train bloom-qa --device cpu --output_dir {} --disable_tqdm --report_to none --config_name {} --tokenizer_name "
        "{} --train_file {} --max_length 160 --max_train_samples 16 --per_device_train_batch_size 2 "
        "--gradient_accumulation_steps 2 --learning_rate 1e-2 --logging_steps 1 --save_strategy no {}",
        out(name), kTestConfig, kTestTokenizer, kTestRows, more);
  }
  // With dropout: 8 rows, 2 per step and rank.
  std::string gpt_words(const std::string& name, const std::string& more) const {
    return fmt::format(
        "train gpt-qa --device cpu --output_dir {} --disable_tqdm --report_to none --tokenizer_name {} --train_file {} "
        "--max_length 96 --seq_length 96 --vocab_size 500 --hidden_size 32 --num_layers 2 --num_heads 4 --ff_dim 48 "
        "--max_train_samples 8 --per_device_train_batch_size 2 --num_train_epochs 2 --logging_steps 1 "
        "--save_strategy no {}",
        out(name), kTestTokenizer, kTestRows, more);
  }
  Ended bloom(const std::string& name, const std::string& more, int num_ranks = 0) const {
    return run_tessera(bloom_words(name, more), num_ranks);
  }
  Ended gpt(const std::string& name, const std::string& more, int num_ranks = 0) const {
    return run_tessera(gpt_words(name, more), num_ranks);
  }

  const TestFolder folder_;
};

// From the printed lines.
inline std::vector<double> logged(const std::string& output, const std::string& key) {
  std::vector<double> values;
  for (const LogLine& line : parse_log(output)) {
    if (const auto value = line.record.number(key)) values.push_back(*value);
  }
  return values;
}

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace tessera
