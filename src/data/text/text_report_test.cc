#include "data/text/text_report.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "data/text/qa_sequence.h"
#include "data/text/token_store_builder.h"
#include "support/message_of.h"
#include "support/squad_sample.h"
#include "tessera/ignored_target.h"

namespace tessera {
namespace {

TEST(TextReport, CountsWhatIsInTheFile) {
  const SquadSummary sample = summarise(read_squad(squad_sample("sample-v1.1.json")));
  EXPECT_EQ(sample.num_rows, 37);
  EXPECT_EQ(sample.num_articles, 12);
  EXPECT_EQ(sample.num_contexts, 12);
  EXPECT_EQ(sample.num_unanswered, 0);
  EXPECT_EQ(sample.num_misplaced, 0);  // a non-ASCII letter counts as one character
  const SquadSummary made = summarise(read_squad(squad_sample("made.jsonl")));
  EXPECT_EQ(made.num_rows, 4);
  EXPECT_EQ(made.num_contexts, 3);
  EXPECT_EQ(made.num_answers, 4);
  EXPECT_EQ(made.num_unanswered, 1);
  EXPECT_EQ(made.num_misplaced, 0);
  const SquadSummary wrong = summarise(parse_squad(
      R"([{"context": "\u00e9tude", "question": "q", "answers": {"text": ["tu", "tu", "de"], "answer_start": [1, 2, 99]}}])",
      "x"));
  EXPECT_EQ(wrong.num_misplaced, 2);
  EXPECT_NE(summary_text(wrong).find("misplaced answers      2"), std::string::npos) << summary_text(wrong);
  const std::string row = R"({"id": "a", "context": "c", "question": "q", "answers": []})";
  const SquadSummary twice = summarise(parse_squad("[" + row + "," + row + "," + row + "]", "x"));
  EXPECT_EQ(twice.num_repeated, 2);
  EXPECT_NE(summary_text(twice).find("repeated ids           2 rows"), std::string::npos) << summary_text(twice);
  EXPECT_EQ(sample.num_repeated, 0);
  EXPECT_EQ(wrong.num_repeated, 0);  // a missing id is not a repetition
}

TEST(TextReport, SharesOfPaddingAreThoseOfTheLengths) {
  TokenStoreBuilder builder;
  for (const std::size_t length : {10, 30, 20, 40, 50}) {
    builder.add(std::vector<std::int32_t>(length, 1), std::vector<std::int32_t>(length, kIgnoredTarget), length == 50);
  }
  const TokenStore tokens = TokenStore::of_bytes(builder.bytes("k", 9));
  const TokenSummary summary = summarise(tokens, 50, 2, 60);
  EXPECT_DOUBLE_EQ(summary.padding_to_max_length, 1 - 150.0 / 250);          // 5 rows of 50
  EXPECT_DOUBLE_EQ(summary.padding_to_longest, 1 - 150.0 / (60 + 80 + 50));  // 2 x 30, 2 x 40, 1 x 50
  EXPECT_EQ(summary.median_length, 30);
  EXPECT_EQ(summary.num_groups_in_order, 3);  // 10 + 30 + 20, 40, 50
  EXPECT_EQ(summary.num_groups_tight, 3);     // 50 + 10, 40 + 20, 30
  const std::string text = summary_text(summary);
  EXPECT_NE(text.find("rows used              5 of 9\n"), std::string::npos) << text;
  EXPECT_NE(text.find("truncated              1 rows, to max_length 50"), std::string::npos) << text;
  EXPECT_NE(text.find("padding avoided        40.0 % against padding to max_length, 21.1 %"), std::string::npos)
      << text;
  EXPECT_EQ(summary_json(summary)["batches_in_order"], 3);
  const std::string expected = "row 4 has 50 tokens, more than the 45 of a whole batch";
  EXPECT_EQ(message_of([&] { summarise(tokens, 50, 2, 45); }).substr(0, expected.size()), expected);
  EXPECT_THROW(summarise(tokens, 50, 0, 0), Error);
  EXPECT_FALSE(summary_json(summarise(tokens, 50, 2, 0)).contains("batches_in_order"));
}

TEST(TextReport, CountsTheBatchesThatRowsFill) {
  const auto summary_of = [](const std::vector<std::size_t>& lengths, std::int64_t batch_tokens) {
    TokenStoreBuilder builder;
    for (const std::size_t length : lengths) {
      builder.add(std::vector<std::int32_t>(length, 1), std::vector<std::int32_t>(length, kIgnoredTarget), false);
    }
    return summarise(TokenStore::of_bytes(builder.bytes("k", std::ssize(lengths))), 512, 2, batch_tokens);
  };
  const std::vector<std::size_t> lengths = {4, 3, 3, 9, 1, 1, 10};
  EXPECT_EQ(summary_of(lengths, 10).num_groups_in_order, 4);  // 4 + 3 + 3, 9 + 1, 1, 10
  EXPECT_EQ(summary_of(lengths, 10).num_groups_tight, 4);
  EXPECT_EQ(summary_of(lengths, 11).num_groups_in_order, 3);  // 4 + 3 + 3, 9 + 1 + 1, 10
  EXPECT_EQ(summary_of(lengths, 11).num_groups_tight, 3);
  EXPECT_EQ(summary_of({6, 6, 4, 4}, 10).num_groups_in_order, 3);
  EXPECT_EQ(summary_of({6, 6, 4, 4}, 10).num_groups_tight, 2);
  EXPECT_EQ(summary_of({}, 10).num_groups_in_order, 0);
  EXPECT_EQ(summary_of({}, 10).num_groups_tight, 0);
  std::mt19937 random(1);
  for (int repetition = 0; repetition < 50; ++repetition) {
    std::vector<std::size_t> many(200);
    for (auto& length : many) length = 1 + random() % 512;
    const TokenSummary summary = summary_of(many, 2048);
    EXPECT_LE(summary.num_groups_tight, summary.num_groups_in_order);
    EXPECT_GE(summary.num_groups_tight * 2048, summary.counts.num_tokens);
  }
}

}  // namespace
}  // namespace tessera
