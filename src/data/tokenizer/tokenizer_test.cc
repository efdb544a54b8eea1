#include "data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "support/tokenizer_references.h"

namespace tessera {
namespace {

using namespace internal;

Tokenizer bloom_like() {
  return Tokenizer::load(reference_folder() / "bloom_like.json");
}

TEST(Tokenizer, SpecialTokensInTheTextAreFoundAndCanBeLeftOut) {
  const Tokenizer tokenizer = bloom_like();
  const auto ids = tokenizer.encode("<s>Hello</s>");
  ASSERT_GE(ids.size(), 3U);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_EQ(tokenizer.decode(ids), "<s>Hello</s>");
  EXPECT_EQ(tokenizer.decode(ids, true), "Hello");
}

// As in the original: what a token has taken on its right leaves nothing for the next one, or only its right part.
TEST(Tokenizer, AddedTokensOfWhiteSpaceTakeEachSpaceOnce) {
  const auto ids_of = [](bool lstrip, bool rstrip, const std::string& text) {
    Json file = Json::parse(R"({"model": {"vocab": {"a": 0}, "merges": []}})");
    file["added_tokens"] = {{{"id", 1},
                             {"content", "  "},
                             {"single_word", false},
                             {"lstrip", lstrip},
                             {"rstrip", rstrip},
                             {"normalized", false},
                             {"special", true}}};
    return Tokenizer::from_json(file.dump(), "t.json").encode(text);
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids_of(true, true, "a     a"), (Ids{0, 1, 0}));
  EXPECT_EQ(ids_of(true, false, "a    a"), (Ids{0, 1, 1, 0}));
  EXPECT_EQ(ids_of(false, true, "a    a"), (Ids{0, 1, 1, 0}));
  const std::string spaces(1 << 19, ' ');  // quadratic time would be minutes
  EXPECT_EQ(ids_of(true, false, spaces).size(), spaces.size() / 2);
  EXPECT_EQ(ids_of(false, true, spaces).size(), spaces.size() / 2);
}

TEST(Tokenizer, BrokenUtf8IsReadAsReplacementCharacters) {
  const Tokenizer tokenizer = bloom_like();
  EXPECT_EQ(tokenizer.encode("a\xFF\xE2\x82z"), tokenizer.encode("a\uFFFD\uFFFDz"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF")), "a\uFFFD");
}

TEST(Tokenizer, DecodingPartOfACharacterGivesAReplacementCharacter) {
  const Tokenizer tokenizer = bloom_like();
  const auto byte = tokenizer.id_of("\u00E2");  // stands for the byte 0xE2
  ASSERT_TRUE(byte);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{*byte}), "\uFFFD");
}

TEST(Tokenizer, DecodeLeavesOutNumbersThatNoTokenHasAndRefusesNegativeOnes) {
  const Tokenizer tokenizer = bloom_like();
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{1, 7'999'999, 2}), "<s></s>");
  EXPECT_THROW(tokenizer.decode(std::vector<std::int32_t>{-1}), UsageError);
}

TEST(Tokenizer, EmptyTextHasOnlyWhatIsAdded) {
  EXPECT_TRUE(bloom_like().encode("").empty());
  const Tokenizer template_added = Tokenizer::from_json(
      changed_file("bloom_like", parse_json(R"({"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2],
                                  "cls": ["<s>", 1], "trim_offsets": true, "add_prefix_space": false}})",
                                            "here")),
      "t.json");
  EXPECT_EQ(template_added.encode(""), (std::vector<std::int32_t>{1, 2}));
  EXPECT_TRUE(template_added.encode("", false).empty());
}

TEST(Tokenizer, ManyThreadsMayUseOne) {
  const Tokenizer tokenizer = bloom_like();
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 300; ++i) texts.push_back(RandomText::make(5, i));
  std::vector<std::vector<std::int32_t>> expected;
  for (const std::string& text : texts) expected.push_back(tokenizer.encode(text));
  std::vector<int> num_wrong(8, 0);
  std::vector<std::thread> threads;
  for (int& wrong : num_wrong) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < texts.size(); ++i) wrong += tokenizer.encode(texts[i]) == expected[i] ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, std::vector<int>(8, 0));
}

// Sixteen times the text may not take much more than sixteen times as long; a quadratic step would take 256 times.
TEST(Tokenizer, TimeIsNearlyLinearInTheText) {
  const Tokenizer tokenizer = bloom_like();
  const auto seconds = [&](const std::string& text) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      tokenizer.encode(text);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return least;
  };
  for (const char* unit : {"a", " ", "ab", "\u4f60", "<", ". ", "'"}) {
    std::string text;
    while (text.size() < 1 << 20) text += unit;
    const double small =
        seconds(text.substr(0, text.size() / 16 / std::string(unit).size() * std::string(unit).size()));
    EXPECT_LT(seconds(text), 16 * 6 * small + 0.05) << unit;
  }
}

}  // namespace
}  // namespace tessera
