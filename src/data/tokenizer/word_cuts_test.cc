#include "data/tokenizer/word_cuts.h"

#include <gtest/gtest.h>

#include "data/tokenizer/bpe.h"

namespace tessera::internal {
namespace {

using Texts = std::vector<std::string>;

// Lower case letters, the mark and bytes are tokens.
WordCuts cuts_of(const MergePairs& merges, bool keeps_unknown_characters = true) {
  WordCuts::Model model{.merges = merges,
                        .known_ascii = {},
                        .knows_mark = true,
                        .keeps_unknown_characters = keeps_unknown_characters,
                        .tokens_of_unknown = {"<0x00>"}};
  for (std::size_t c = 'a'; c <= 'z'; ++c) model.known_ascii.set(c);
  model.known_ascii.set('.');
  return WordCuts(model);
}

Texts words(const WordCuts& cuts, std::string_view piece) {
  Texts found;
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = cuts.end_of_word(piece, begin);
    found.emplace_back(piece.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

const MergePairs kMerges = {{"a", "b"}, {"ab", "c"}, {"\u2581", "a"}, {"\u2581", "\u2581"}, {"c", "."}};

TEST(WordCuts, AreWhereNoMergeHasItsSeam) {
  const WordCuts cuts = cuts_of(kMerges);
  EXPECT_EQ(words(cuts, "abc.x"), (Texts{"abc.", "x"}));
  EXPECT_EQ(words(cuts, "\u2581abc\u2581\u2581abc"), (Texts{"\u2581abc", "\u2581\u2581abc"}));
  EXPECT_EQ(words(cuts, "ac"), (Texts{"a", "c"}));
}

// What an unknown character becomes may be joined with its neighbours; before the mark it is not.
TEST(WordCuts, AreNotBesideUnknownCharactersButForTheMark) {
  const WordCuts cuts = cuts_of(kMerges);
  EXPECT_EQ(words(cuts, "x1x"), (Texts{"x1x"}));
  EXPECT_EQ(words(cuts, "x\u00e9x"), (Texts{"x\u00e9x"}));
  EXPECT_EQ(words(cuts, "1\u2581\u00e9\u2581x"), (Texts{"1", "\u2581\u00e9", "\u2581x"}));
}

TEST(WordCuts, AreNotBeforeTheMarkIfAMergeJoinsIt) {
  MergePairs merges = kMerges;
  merges.emplace_back("x", "\u2581");
  merges.emplace_back("\u00e9", "\u2581");
  const WordCuts cuts = cuts_of(merges);
  EXPECT_EQ(words(cuts, "x\u2581y\u2581"), (Texts{"x\u2581y", "\u2581"}));
  EXPECT_EQ(words(cuts, "\u00e9\u2581\u00e8\u2581"), (Texts{"\u00e9\u2581\u00e8", "\u2581"}));
  // A byte's token before the mark: then no unknown character may be cut off.
  merges.emplace_back("<0x41>", "\u2581");
  EXPECT_EQ(words(cuts_of(merges), "A\u2581y\u2581"), (Texts{"A\u2581y", "\u2581"}));
}

// Dropped characters make their neighbours meet.
TEST(WordCuts, AreNoneWhereUnknownCharactersAreDropped) {
  EXPECT_FALSE(cuts_of(kMerges, false).any());
  EXPECT_FALSE(WordCuts().any());
}

TEST(WordCuts, ChangeNoTokens) {
  Vocabulary vocabulary;
  const auto add = [&](const std::string& token) {
    if (!vocabulary.id_of(token)) vocabulary.add(token, vocabulary.end_id());
  };
  add("<unk>");
  for (const char* c : {"a", "b", "c", ".", "\u2581", "\u00e9"}) add(c);
  const MergePairs merges = {{"a", "b"},           {"\u2581", "ab"}, {"b", "c"},
                             {"\u2581", "\u2581"}, {"\u00e9", "a"},  {".", "."}};
  for (const auto& [left, right] : merges) add(left + right);
  BpeSettings cut, whole;
  cut.unk_token = whole.unk_token = "<unk>";
  cut.fuse_unk = whole.fuse_unk = true;
  whole.ignore_merges = true;  // no text below is one token: this only keeps the model from cutting
  const Bpe with_cuts(vocabulary, merges, cut, "test"), without(vocabulary, merges, whole, "test");
  std::uint32_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string text = "c.";
    for (std::uint32_t left = i % 90; left > 0; --left) {
      state = state * 1664525 + 1013904223;
      static const char* const kCharacters[] = {"a", "b", "c", ".", "\u2581", "\u2581", "\u00e9", "?", "\u4f60"};
      text += kCharacters[(state >> 16) % 9];
    }
    BpeScratch scratch, other;
    std::vector<std::int32_t> ids, expected;
    with_cuts.encode(text, scratch, ids);
    without.encode(text, other, expected);
    ASSERT_EQ(ids, expected) << text;
  }
}

}  // namespace
}  // namespace tessera::internal
