#include "data/text/qa_sequence.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "support/message_of.h"
#include "support/row_hash.h"
#include "support/squad_sample.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

// The sample's tokenizer, with the given configuration.
Tokenizer tokenizer_with(const std::string& old_text, const std::string& new_text,
                         const std::string& file = "tokenizer_config.json") {
  const TestFolder folder;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string text = read_file(squad_sample("tokenizer") / name);
    if (name == file) {
      const std::size_t at = text.find(old_text);
      if (at == std::string::npos) throw Error("the sample's tokenizer has no " + old_text);
      text.replace(at, old_text.size(), new_text);
    }
    write_file_atomically(folder / name, text);
  }
  return Tokenizer::load(folder.path());
}

Tokenizer tokenizer_padding(const std::string& side) {
  return tokenizer_with("\"left\"", "\"" + side + "\"");
}

std::vector<SquadRow> sample_rows() {
  std::vector<SquadRow> rows = read_squad(squad_sample("sample-v1.1.json")).rows;
  for (SquadRow& row : read_squad(squad_sample("made.jsonl")).rows) rows.push_back(std::move(row));
  return rows;
}

std::string hash_of(const QaSequence& sequence) {
  Ids both = sequence.ids;
  both.insert(both.end(), sequence.targets.begin(), sequence.targets.end());
  return hash_of_numbers<std::int32_t>(both);
}

Ids last_of(const Ids& ids, std::size_t count) {
  return {ids.end() - static_cast<std::ptrdiff_t>(std::min(count, ids.size())), ids.end()};
}

TEST(QaSequence, EveryModeIsWhatTransformersMakesOfEveryRow) {
  const std::vector<SquadRow> rows = sample_rows();
  const Json references = read_json_file(squad_sample("labels.json"));
  ASSERT_EQ(references["cases"].size(), 16U);  // 4 modes, 2 padding sides, 2 lengths
  for (const Json& c : references["cases"]) {
    const Tokenizer tokenizer = tokenizer_padding(c["padding_side"]);
    const QaEncoder encoder(tokenizer, label_mode_of(c["mode"]), c["max_length"]);
    ASSERT_EQ(c["rows"].size(), rows.size());
    SCOPED_TRACE(c["mode"].get<std::string>() + " " + c["padding_side"].get<std::string>());
    const QaSequence first = encoder.encode(rows[0]);
    EXPECT_EQ(last_of(first.ids, 12), c["first_ids"].get<Ids>());
    EXPECT_EQ(last_of(first.targets, 12), c["first_targets"].get<Ids>());
    std::int64_t num_tokens = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const QaSequence sequence = encoder.encode(rows[i]);
      num_tokens += std::ssize(sequence.ids);
      EXPECT_EQ(hash_of(sequence), c["rows"][i].get<std::string>()) << "row " << i;
    }
    EXPECT_EQ(num_tokens, c["tokens"].get<std::int64_t>());
  }
}

// The whole development file with GPT-2's vocabulary; TESSERA_TEST_DATA names the folder that holds both.
TEST(QaSequence, EveryModeIsWhatTransformersMakesOfTheWholeDevelopmentFile) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "TESSERA_TEST_DATA is not set";
  const TestFolder folder;
  for (const char* name : {"vocab.json", "merges.txt"}) {
    std::filesystem::copy_file(std::filesystem::path(data) / "gpt2_fallback" / name, folder / name);
  }
  write_file_atomically(folder / "tokenizer_config.json", R"({"eos_token": "<|endoftext|>", "padding_side": "right"})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const Json references = read_json_file(squad_sample("whole.json"));
  const SquadFile file = read_squad(std::filesystem::path(data) / "squad" / references["file"].get<std::string>());
  for (const auto& [mode, expected] : references["modes"].items()) {
    const QaEncoder encoder(tokenizer, label_mode_of(mode), references["max_length"]);
    Ids all;
    for (const SquadRow& row : file.rows) {
      const QaSequence sequence = encoder.encode(row);
      for (const Ids* numbers : {&sequence.ids, &sequence.targets}) {
        all.insert(all.end(), numbers->begin(), numbers->end());
      }
    }
    EXPECT_EQ(std::ssize(file.rows), expected["rows"].get<std::int64_t>());
    EXPECT_EQ(all.size(), expected["tokens"].get<std::size_t>() * 2) << mode;
    EXPECT_EQ(hash_of_numbers<std::int32_t>(all), expected["hash"].get<std::string>()) << mode;
  }
}

TEST(QaSequence, TruncationNeverCutsTheAnswerInModeAnswer) {
  const Tokenizer tokenizer = tokenizer_padding("left");
  int num_cut = 0;
  for (const SquadRow& row : sample_rows()) {
    Ids answer = tokenizer.encode(" " + std::string(qa_answer(row)), false);
    answer.push_back(tokenizer.eos_id().value());
    for (const std::int64_t max_length : {128, 200, 512}) {
      const QaSequence sequence = QaEncoder(tokenizer, LabelMode::kAnswer, max_length).encode(row);
      EXPECT_LE(std::ssize(sequence.ids), max_length);
      EXPECT_EQ(last_of(sequence.ids, answer.size()), answer);
      // The answer and the end token count, each predicted by the position before it.
      Ids counted;
      for (const std::int32_t target : sequence.targets) {
        if (target != kIgnoredTarget) counted.push_back(target);
      }
      EXPECT_EQ(counted, answer);
      const std::string text = tokenizer.decode(sequence.ids);
      EXPECT_NE(text.find("Question: " + row.question + " Context:"), std::string::npos) << text;
      EXPECT_NE(text.find(" Answer:"), std::string::npos);
      if (sequence.is_truncated) {
        EXPECT_EQ(std::ssize(sequence.ids), max_length);  // no more was cut than necessary
        ++num_cut;
      }
    }
  }
  EXPECT_GT(num_cut, 30);
}

TEST(QaSequence, ARowWhoseQuestionAndAnswerDoNotFitIsRefused) {
  const Tokenizer tokenizer = tokenizer_padding("left");
  const std::string message =
      message_of([&] { QaEncoder(tokenizer, LabelMode::kAnswer, 12).encode(sample_rows()[0]); });
  EXPECT_TRUE(message.starts_with("question and answer alone take ")) << message;
  EXPECT_NE(message.find("more than max_length 12"), std::string::npos) << message;
}

TEST(QaSequence, WithoutAnAnswerTheTextSaysSo) {
  const SquadRow row = read_squad(squad_sample("made-v2.0.json")).rows[0];
  EXPECT_EQ(qa_answer(row), "No Answer");
  EXPECT_EQ(qa_prompt(row),
            "Question: Who designed the lighthouse? Context: The lighthouse on the northern rock was lit for the first "
            "time in 1871. It is 31 metres tall. Answer:");
}

TEST(QaSequence, SpecialTokensBehindATextStandBehindTheAnswerAndAreNeverCut) {
  const Tokenizer tokenizer = tokenizer_with(
      R"("post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true})",
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[],"special_tokens":)"
      R"({"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}})",
      "tokenizer.json");
  const SquadRow row = sample_rows()[0];
  for (const std::int64_t max_length : {100, 512}) {
    for (const LabelMode mode : {LabelMode::kAnswer, LabelMode::kFull, LabelMode::kSeparate}) {
      const Ids ids = QaEncoder(tokenizer, mode, max_length).encode(row).ids;
      EXPECT_LE(std::ssize(ids), max_length);
      EXPECT_EQ(ids.front(), 1);
      EXPECT_EQ(ids.back(), 2);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), 1) << name_of(mode);
    }
  }
}

TEST(QaSequence, RefusesModesThatTheTokenizerCannotServe) {
  const Tokenizer no_end = tokenizer_with("\"eos_token\": \"</s>\",", "");
  EXPECT_NE(message_of([&] { QaEncoder(no_end, LabelMode::kAnswer, 512); }).find("the tokenizer names none"),
            std::string::npos);
  EXPECT_NO_THROW(QaEncoder(no_end, LabelMode::kFull, 512));
  EXPECT_THROW(QaEncoder(no_end, LabelMode::kFull, 0), UsageError);
  EXPECT_THROW(QaEncoder(no_end, LabelMode::kFull, 1'000'000'000), UsageError);
  EXPECT_NE(message_of([] { label_mode_of("all"); }).find("answer, full, padded, separate"), std::string::npos);
}

TEST(QaSequence, OnlyTheModesThatReproduceWarn) {
  EXPECT_EQ(warning_of(LabelMode::kAnswer), "");
  EXPECT_EQ(warning_of(LabelMode::kFull), "");
  EXPECT_NE(warning_of(LabelMode::kPadded).find("ZeRO workshop"), std::string::npos);
  EXPECT_NE(warning_of(LabelMode::kSeparate).find("FSDP workshop"), std::string::npos);
}

}  // namespace
}  // namespace tessera
