// `tessera train sft` and `tessera train lm` beside TRL's SFTTrainer and transformers' run_clm: the same weights, rows,
// arguments and seed give the same losses (tools/references/row_jobs.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "commands/train_command.h"
#include "core/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const std::string kRowJobs = kTestData + "/row_jobs/";

class RowLosses : public TrainCommandTest, public testing::WithParamInterface<const char*> {
 protected:
  Ended train(const std::string& job, const std::string& name, const std::string& more) const {
    return run_tessera(
        fmt::format("train {} --device cpu --disable_tqdm --report_to none --logging_steps 1 "
                    "--model_name_or_path {}{} --output_dir {} {}",
                    job, kRowJobs, GetParam(), out(name), more));
  }

  std::string arguments() const {
    std::string words;
    for (const auto& [key, value] : reference_.at("arguments").items()) {
      words += fmt::format("--{} {} ", key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    return words;
  }

  // Before they are rounded for the log: differences of the sums that checkpoints keep.
  std::vector<double> exact_losses(const std::string& name) const {
    std::vector<double> losses;
    double before = 0;
    for (int step = 1; step <= reference_.at("arguments").at("max_steps"); ++step) {
      const Json state = read_json_file(folder_ / name / fmt::format("checkpoint-{}", step) / "trainer_state.json");
      const double sum = state.at("stateful_callbacks").at("Tessera").at("attributes").at("total_loss");
      losses.push_back(sum - std::exchange(before, sum));
    }
    return losses;
  }

  void expect_losses(const std::string& job, const std::string& name, const Json& expected, const std::string& more) {
    const Ended ended = train(job, name, arguments() + "--save_strategy steps --save_steps 1 " + more);
    ASSERT_EQ(ended.status, 0) << ended.output;
    output_ = ended.output;
    const auto wanted = expected.at("loss").get<std::vector<double>>();
    const std::vector<double> found = exact_losses(name), norms = logged(ended.output, "grad_norm");
    ASSERT_EQ(found.size(), wanted.size());
    ASSERT_EQ(norms.size(), wanted.size());
    double largest = 0, largest_of_norms = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], wanted[i], 5e-5) << name << ", step " << i + 1;
      const double norm = expected.at("grad_norm").at(i);
      EXPECT_NEAR(norms[i], norm, 5e-4 * norm) << name << ", step " << i + 1;
      largest = std::max(largest, std::abs(found[i] - wanted[i]));
      largest_of_norms = std::max(largest_of_norms, std::abs(norms[i] - norm) / norm);
    }
    RecordProperty(name + "_largest_difference", fmt::format("{:.2g}", largest));
    RecordProperty(name + "_largest_difference_of_norms", fmt::format("{:.2g}", largest_of_norms));
  }

  double first_eval_loss(const std::string& job, const std::string& name, const std::string& more) const {
    const Ended ended = train(job, name,
                              "--max_steps 1 --learning_rate 1e-9 --save_strategy no --do_eval --eval_on_start "
                              "--per_device_train_batch_size 2 " +
                                  more);
    EXPECT_EQ(ended.status, 0) << ended.output;
    const std::vector<double> losses = logged(ended.output, "eval_loss");
    return losses.empty() ? std::nan("") : losses.front();
  }

  const Json reference_ = read_json_file(kRowJobs + "losses.json");
  std::string output_;
};

TEST_P(RowLosses, TwentyStepsOfSftAreThoseOfTrlsSftTrainer) {
  const Json& runs = reference_.at(GetParam()).at("sft");
  ASSERT_EQ(runs.size(), 3U);
  for (const Json& run : runs) {
    const std::string mode = run.at("mode");
    expect_losses("sft", mode, run,
                  fmt::format("--train_file {}{}.jsonl --max_train_samples {} --max_length {} "
                              "--completion_only_loss {} --assistant_only_loss {}",
                              kRowJobs, run.at("file").get<std::string>(), reference_.at("num_rows").dump(),
                              reference_.at("max_length").dump(), mode == "completion", mode == "assistant"));
  }
}

TEST_P(RowLosses, TwentyStepsOfLmAcrossDocumentsAreThoseOfRunClm) {
  const Json& run = reference_.at(GetParam()).at("lm");
  expect_losses("lm", "lm", run,
                fmt::format("--train_file {}documents.jsonl.gz --block_size {} --attention_across_documents "
                            "--append_eos_token false",
                            kRowJobs, reference_.at("block_size").dump()));
  EXPECT_TRUE(contains(output_, fmt::format("packed: 2300 rows as {} of", run.at("num_blocks").dump()))) << output_;
}

// The mean over all tokens that count, before the first update.
TEST_P(RowLosses, ATokenHasTheSameLossPackedOrNot) {
  for (const std::string file : {"pairs", "chats", "texts"}) {
    const std::string rows =
        fmt::format("--train_file {0}{1}.jsonl --validation_file {0}{1}.jsonl --max_length 128 ", kRowJobs, file);
    const double apart = first_eval_loss("sft", file + "_apart", rows + "--per_device_eval_batch_size 1");
    const double packed = first_eval_loss("sft", file + "_packed", rows + "--packing");
    EXPECT_NEAR(packed, apart, 1e-6 * apart) << file;
    RecordProperty(file + "_difference", fmt::format("{:.2g}", std::abs(packed - apart)));
  }
}

// With sft each document is evaluated alone, in a pass of its own; both end it by the end token.
TEST_P(RowLosses, WithinDocumentsLmHasTheLossOfEachDocumentAlone) {
  const std::string rows = fmt::format("--train_file {0}texts.jsonl --validation_file {0}texts.jsonl ", kRowJobs);
  const double alone = first_eval_loss("sft", "alone", rows + "--max_length 256 --per_device_eval_batch_size 1");
  const double together = first_eval_loss("lm", "together", rows + "--max_length 256");
  EXPECT_NEAR(together, alone, 1e-6 * alone);
  RecordProperty("difference", fmt::format("{:.2g}", std::abs(together - alone)));
  // What attention across documents changes.
  const double across = first_eval_loss("lm", "across", rows + "--max_length 256 --attention_across_documents");
  EXPECT_GT(std::abs(across - alone), 1e-3 * alone);
}

INSTANTIATE_TEST_SUITE_P(All, RowLosses, testing::Values("llama", "qwen3"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tessera
