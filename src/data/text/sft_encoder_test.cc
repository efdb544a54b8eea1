// Tokens and what counts of them, row by row, beside what TRL's SFTTrainer made of the same files
// (tools/references/row_jobs.py).
#include "data/text/sft_encoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/file.h"
#include "data/rows/row_stream.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const fs::path kEncodings = fs::path(TESSERA_TEST_DATA_FOLDER) / "row_jobs";

class SftEncoderOf : public testing::TestWithParam<const char*> {
 protected:
  SftEncoder encoder(const std::string& mode, SftOverflow overflow, std::int64_t max_length) const {
    const Json config = read_json_file(folder_ / "tokenizer_config.json");
    return {tokenizer_,
            find_chat_template(folder_, config),
            special_token_texts(folder_, config),
            {.max_length = max_length,
             .overflow = overflow,
             .completion_only = mode.find("completion") != std::string::npos,
             .assistant_only = mode.starts_with("assistant")}};
  }

  static std::vector<TrainingRow> rows_of(const std::string& file) {
    const auto stream = open_rows({kEncodings / (file + ".jsonl")});
    std::vector<PlacedRow> placed;
    while (auto block = stream->next()) {
      for (PlacedRow& row : stream->parse(*block)) placed.push_back(std::move(row));
    }
    const RowForm form = RowForm::find(placed);
    std::vector<TrainingRow> rows;
    for (const PlacedRow& row : placed) rows.push_back(form.read(row.values));
    return rows;
  }

  static std::vector<bool> counted_in(const Json& runs, std::size_t length) {
    std::vector<bool> counted(length);
    for (const Json& run : runs) {
      std::fill(counted.begin() + run.at(0).get<std::ptrdiff_t>(), counted.begin() + run.at(1).get<std::ptrdiff_t>(),
                true);
    }
    return counted;
  }

  const fs::path folder_ = kEncodings / GetParam();
  const Tokenizer tokenizer_ = Tokenizer::load(folder_);
  const Json reference_ = read_json_file(kEncodings / "tokens.json");
};

TEST_P(SftEncoderOf, TokensAndMasksAreThoseOfTrlRowByRow) {
  int num_compared = 0;
  for (const auto& [file, expected] : reference_.at(GetParam()).items()) {
    const std::vector<TrainingRow> rows = rows_of(file);
    ASSERT_EQ(rows.size(), expected.at("ids").size()) << file;
    for (const auto& [mode, of_mode] : expected.at("modes").items()) {
      const SftEncoder whole = encoder(mode, SftOverflow::kKeep, 0);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string what = fmt::format("{}, {}, row {}", file, mode, i);
        const std::vector<EncodedRow> found = whole.encode(rows[i]);
        ASSERT_EQ(found.size(), 1U) << what;
        const auto ids = expected.at("ids").at(i).get<std::vector<std::int32_t>>();
        EXPECT_EQ(found[0].ids, ids) << what;
        EXPECT_EQ(found[0].counted, counted_in(of_mode.at("counted").at(i), ids.size())) << what;
        ++num_compared;
      }
    }
  }
  EXPECT_EQ(num_compared, 9 * 25 - 1);
}

TEST_P(SftEncoderOf, CutsAndLeavesOutTheRowsThatTrlDoes) {
  const std::int64_t max_length = reference_.at("max_length");
  int num_cut = 0, num_left_out = 0;
  for (const auto& [file, expected] : reference_.at(GetParam()).items()) {
    const std::vector<TrainingRow> rows = rows_of(file);
    for (const auto& [mode, of_mode] : expected.at("modes").items()) {
      const SftEncoder cutting = encoder(mode, SftOverflow::kCut, max_length);
      const SftEncoder whole = encoder(mode, SftOverflow::kKeep, 0);
      std::vector<std::size_t> kept;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const EncodedRow found = cutting.encode(rows[i]).at(0);
        EncodedRow wanted = whole.encode(rows[i]).at(0);
        EXPECT_EQ(found.is_truncated, std::ssize(wanted.ids) > max_length) << file << " " << i;
        wanted.ids.resize(std::min(wanted.ids.size(), static_cast<std::size_t>(max_length)));
        wanted.counted.resize(wanted.ids.size());
        EXPECT_EQ(found.ids, wanted.ids) << file << " " << i;
        EXPECT_EQ(found.counted, wanted.counted) << file << " " << i;
        if (!found.is_dropped) kept.push_back(i);
        num_cut += found.is_truncated ? 1 : 0;
      }
      EXPECT_EQ(kept, of_mode.at("kept").get<std::vector<std::size_t>>()) << file << " " << mode;
      num_left_out += static_cast<int>(rows.size() - kept.size());
    }
  }
  EXPECT_GT(num_cut, 9);
  EXPECT_GT(num_left_out, 3);
}

INSTANTIATE_TEST_SUITE_P(All, SftEncoderOf, testing::Values("llama", "qwen3"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tessera
