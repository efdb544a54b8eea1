#include "data/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"

namespace tessera::internal {
namespace {

Bpe letters_and_merges(const MergePairs& merges, BpeSettings settings = {}) {
  Vocabulary vocabulary;
  for (char c = 'a'; c <= 'z'; ++c) vocabulary.add(std::string(1, c), vocabulary.end_id());
  for (const auto& [left, right] : merges) {
    if (!vocabulary.id_of(left + right)) vocabulary.add(left + right, vocabulary.end_id());
  }
  vocabulary.add("?", vocabulary.end_id());
  return Bpe(std::move(vocabulary), merges, std::move(settings), "test");
}

std::string encoded(const Bpe& bpe, std::string_view piece) {
  BpeScratch scratch;
  std::vector<std::int32_t> ids;
  bpe.encode(piece, scratch, ids);
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : " ") + *bpe.vocabulary().token_of(id);
  return text;
}

TEST(Bpe, MergesTheLowestRankFirstAndTheLeftmostOfEquals) {
  const Bpe bpe = letters_and_merges({{"b", "c"}, {"a", "b"}, {"a", "a"}});
  EXPECT_EQ(encoded(bpe, "abc"), "a bc");
  EXPECT_EQ(encoded(bpe, "abab"), "ab ab");
  EXPECT_EQ(encoded(bpe, "aaa"), "aa a");
  EXPECT_EQ(encoded(bpe, ""), "");
}

// Short pieces are merged by scanning all pairs, long ones with a heap: the tokens are the same.
TEST(Bpe, LongPiecesAreMergedLikeShortOnes) {
  const Bpe bpe = letters_and_merges({{"a", "b"}, {"ab", "c"}, {"c", "d"}, {"abc", "abc"}, {"d", "a"}});
  std::string piece;
  for (int i = 0; i < 200; ++i) piece += "abcabcda"[i % 8];
  std::string expected;
  for (int i = 0; i < 25; ++i) expected += std::string(i == 0 ? "" : " ") + "abcabc da";
  EXPECT_EQ(encoded(bpe, piece), expected);
  EXPECT_EQ(encoded(bpe, piece.substr(0, 32)), expected.substr(0, 4 * 10 - 1));
}

TEST(Bpe, AWordIsMergedAlikeTheSecondTime) {
  const Bpe bpe = letters_and_merges({{"a", "b"}});
  BpeScratch scratch;
  std::vector<std::int32_t> first, second;
  bpe.encode("abz", scratch, first);
  bpe.encode("abz", scratch, second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.size(), 2U);
}

TEST(Bpe, UnknownCharactersAreDroppedMarkedOrFused) {
  BpeSettings settings;
  EXPECT_EQ(encoded(letters_and_merges({}, settings), "a12b"), "a b");
  settings.unk_token = "?";
  EXPECT_EQ(encoded(letters_and_merges({}, settings), "a12b"), "a ? ? b");
  settings.fuse_unk = true;
  EXPECT_EQ(encoded(letters_and_merges({}, settings), "a12b"), "a ? b");
  settings.unk_token = "<none>";
  EXPECT_THROW(encoded(letters_and_merges({}, settings), "1"), UsageError);
}

TEST(Bpe, AMergeOfAnUnknownTokenIsRefusedByName) {
  try {
    Vocabulary vocabulary;
    vocabulary.add("a", 0);
    Bpe(std::move(vocabulary), {{"a", "a"}}, {}, "f.json: model");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "f.json: model: merge 1 (a + a) needs the token \"aa\", which the vocabulary does not have");
  }
}

// Twice the text takes about twice the time, not four times; the bound is far above n log n and far below n squared.
TEST(Bpe, TimeIsNearlyLinearInThePiece) {
  const Bpe bpe = letters_and_merges({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"a", "b"}, {"b", "a"}});
  const auto seconds = [&](std::size_t size) {
    const std::string piece(size, 'a');
    BpeScratch scratch;
    std::vector<std::int32_t> ids;
    const auto begin = std::chrono::steady_clock::now();
    bpe.encode(piece, scratch, ids);
    EXPECT_EQ(ids.size(), size / 8);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double small = 1e9, large = 1e9;
  for (int i = 0; i < 3; ++i) {
    small = std::min(small, seconds(1 << 16));
    large = std::min(large, seconds(1 << 20));
  }
  EXPECT_LT(large, 16 * 6 * small);  // quadratic: 256 times
}

}  // namespace
}  // namespace tessera::internal
