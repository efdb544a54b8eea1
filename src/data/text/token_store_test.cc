#include "data/text/token_store.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "core/file.h"
#include "data/text/token_rows.h"
#include "data/text/token_store_builder.h"
#include "support/message_of.h"
#include "support/test_folder.h"
#include "tessera/ignored_target.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int32_t kNone = kIgnoredTarget;

std::string store_with_bits() {
  TokenStoreBuilder builder;
  builder.add(Ids{5, 6, 7}, Ids{kNone, 7, kNone}, false);
  builder.add(Ids{}, Ids{}, false);
  builder.add(Ids{8, 9, 10, 11}, Ids{9, 10, 11, kNone}, true);
  builder.add_dropped();
  return builder.bytes("a key", 99);
}

std::string store_with_targets() {
  TokenStoreBuilder builder;
  builder.add_counted(Ids{1, 2, 3}, {}, false);
  builder.add_counted(Ids{1, 2, 3}, {false, false, true}, false);
  builder.add(Ids{5, 6, 7}, Ids{kNone, 900, 901}, false);
  builder.add_counted(Ids{8, 9}, {}, false);
  return builder.bytes("a key", 4);
}

std::string store_of_all() {
  TokenStoreBuilder builder;
  builder.add(Ids{5, 6, 7}, Ids{6, 7, kNone}, false);
  builder.add(Ids{8}, Ids{kNone}, false);
  builder.add_counted(Ids{1, 2}, {true, true}, false);
  return builder.bytes("a key", 3);
}

TEST(TokenStore, GivesBackWhatWasPutIn) {
  const TestFolder folder;
  write_file_atomically(folder / "s", store_with_bits());
  for (const Verify verify : {Verify::kNow, Verify::kWhenRead}) {
    const auto mapped = TokenStore::open(folder / "s", "a key", nullptr, verify);
    ASSERT_TRUE(mapped.has_value());
    EXPECT_TRUE(mapped->is_mapped());
    const TokenStore in_memory = TokenStore::of_bytes(store_with_bits());
    for (const TokenStore* store : {&*mapped, &in_memory}) {
      ASSERT_EQ(store->size(), 3);
      EXPECT_TRUE(std::ranges::equal(store->ids(0), Ids{5, 6, 7}));
      EXPECT_EQ(store->targets(0), (Ids{kNone, 7, kNone}));
      EXPECT_EQ(store->length(1), 0);
      EXPECT_EQ(store->targets(1), Ids{});
      EXPECT_TRUE(std::ranges::equal(store->ids(2), Ids{8, 9, 10, 11}));
      EXPECT_EQ(store->targets(2), (Ids{9, 10, 11, kNone}));
      EXPECT_EQ(store->num_counted(2), 3);
      const TokenCounts& counts = store->counts();
      EXPECT_EQ(counts.num_tokens, 7);
      EXPECT_EQ(counts.num_counted, 4);
      EXPECT_EQ(counts.num_truncated, 1);
      EXPECT_EQ(counts.longest, 4);
      EXPECT_EQ(counts.num_rows_of_file, 99);
      EXPECT_EQ(counts.num_dropped, 1);
      EXPECT_EQ(counts.largest_id, 11);
    }
  }
}

TEST(TokenStore, TakesTheSmallestFormThatHoldsItsTargets) {
  const TokenStore all = TokenStore::of_bytes(store_of_all());
  EXPECT_EQ(all.target_form(), TargetForm::kEveryNext);
  EXPECT_EQ(all.targets(0), (Ids{6, 7, kNone}));
  EXPECT_EQ(all.targets(1), Ids{kNone});
  EXPECT_EQ(all.counts().num_counted, 3);
  EXPECT_TRUE(all.counts_as_target(1, 0));
  const TokenStore bits = TokenStore::of_bytes(store_with_bits());
  EXPECT_EQ(bits.target_form(), TargetForm::kCountedNext);
  EXPECT_FALSE(bits.counts_as_target(0, 0));
  EXPECT_TRUE(bits.counts_as_target(2, 0)) << "the first token of a row that counts as a whole";
  const TokenStore targets = TokenStore::of_bytes(store_with_targets());
  EXPECT_EQ(targets.target_form(), TargetForm::kExplicit);
  EXPECT_EQ(targets.targets(0), (Ids{2, 3, kNone}));
  EXPECT_EQ(targets.targets(1), (Ids{kNone, 3, kNone}));
  EXPECT_EQ(targets.targets(2), (Ids{kNone, 900, 901}));
  EXPECT_EQ(targets.targets(3), (Ids{9, kNone}));
  EXPECT_EQ(targets.counts().num_counted, 6);
  EXPECT_EQ(targets.counts().largest_id, 901);
}

TEST(TokenStore, APieceEndsWhereItEnds) {
  for (const std::string& bytes : {store_with_bits(), store_with_targets()}) {
    const TokenStore store = TokenStore::of_bytes(bytes);
    Ids targets(2);
    store.copy_targets({2, 0, 2}, targets.data());
    EXPECT_EQ(targets[1], kNone);
    EXPECT_EQ(store.num_counted({2, 0, 2}), targets[0] == kNone ? 0 : 1);
  }
  const TokenStore store = TokenStore::of_bytes(store_with_bits());
  EXPECT_EQ(store.num_counted({2, 1, 3}), 2);
  EXPECT_THROW(store.num_counted({2, 2, 3}), Error);
}

// The bits of rows of every length and pattern, at every place within a word.
TEST(TokenStore, BitsGiveTheTargetsThatWerePutIn) {
  std::mt19937 random(7);
  std::vector<Ids> all_ids, all_targets;
  TokenStoreBuilder builder;
  for (int row = 0; row < 400; ++row) {
    const std::size_t length = random() % 300, begin = length == 0 ? 0 : random() % length;
    Ids ids, targets(length, kNone);
    for (std::size_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(random() % 50000));
    for (std::size_t i = begin; i + 1 < length; ++i) {
      if (row % 3 > 0 || random() % 2 == 0) targets[i] = ids[i + 1];
    }
    builder.add(ids, targets, false);
    all_ids.push_back(ids);
    all_targets.push_back(targets);
  }
  const TokenStore store = TokenStore::of_bytes(builder.bytes("k", 400));
  ASSERT_EQ(store.target_form(), TargetForm::kCountedNext);
  std::int64_t num_counted = 0;
  for (std::int64_t row = 0; row < store.size(); ++row) {
    const Ids& targets = all_targets[static_cast<std::size_t>(row)];
    ASSERT_TRUE(std::ranges::equal(store.ids(row), all_ids[static_cast<std::size_t>(row)]));
    ASSERT_EQ(store.targets(row), targets) << row;
    const auto expected = std::ssize(targets) - std::ranges::count(targets, kNone);
    ASSERT_EQ(store.num_counted(row), expected);
    num_counted += expected;
  }
  EXPECT_EQ(store.counts().num_counted, num_counted);
}

TEST(TokenStore, FindsEveryDamagedByteAndEveryCut) {
  for (const std::string& good : {store_with_bits(), store_with_targets(), store_of_all()}) {
    ASSERT_EQ(TokenStore::mistake_in(good, "a key"), "");
    EXPECT_EQ(TokenStore::mistake_in(good, "another"), "it was made for other data");
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      EXPECT_NE(TokenStore::mistake_in(bad, "a key"), "") << "byte " << i;
      EXPECT_NE(TokenStore::mistake_in(good.substr(0, i), "a key"), "") << "cut at " << i;
    }
    EXPECT_NE(TokenStore::mistake_in(good + "x", "a key"), "");
  }
}

TEST(TokenStore, ADamagedBlockIsFoundWhenItIsRead) {
  const TestFolder folder;
  TokenStoreBuilder builder;
  for (int row = 0; row < 100; ++row) builder.add_counted(Ids(1000, row), {}, false);  // 400 kB: several blocks
  std::string bytes = builder.bytes("k", 100);
  bytes[bytes.size() - 1] ^= 1;
  write_file_atomically(folder / "s", bytes);
  EXPECT_FALSE(TokenStore::open(folder / "s", "k").has_value());
  const auto store = TokenStore::open(folder / "s", "k", nullptr, Verify::kWhenRead);
  ASSERT_TRUE(store.has_value());
  EXPECT_EQ(store->ids(0)[0], 0);
  EXPECT_EQ(store->num_counted(99), 999) << "needs no ids";
  const std::string message = message_of([&] { store->ids(99); });
  EXPECT_NE(message.find((folder / "s").string() + " is damaged"), std::string::npos) << message;
  EXPECT_FALSE(is_there(folder / "s")) << "the next start makes it again";
  EXPECT_EQ(store->ids(50)[0], 50);
}

TEST(TokenStore, OpensNothingWhereNothingIs) {
  const TestFolder folder;
  std::string mistake = "old";
  EXPECT_FALSE(TokenStore::open(folder / "none", "k", &mistake).has_value());
  EXPECT_EQ(mistake, "");
  write_file_atomically(folder / "bad", "not a store");
  EXPECT_FALSE(TokenStore::open(folder / "bad", "k", &mistake).has_value());
  EXPECT_EQ(mistake, "it is shorter than its header");
}

TEST(TokenStore, BuilderRefusesWhatDoesNotFit) {
  TokenStoreBuilder builder;
  EXPECT_THROW(builder.add(Ids{1}, Ids{}, false), Error);
  EXPECT_THROW(builder.add_counted(Ids{1}, {true, false}, false), Error);
  EXPECT_THROW(builder.add_counted(Ids{-1}, {}, false), Error);
  EXPECT_THROW(builder.bytes(std::string(33, 'k'), 0), Error);
}

TEST(TokenRows, SeveralStoresAreSeenAsOne) {
  const TokenRows first(TokenStore::of_bytes(store_with_bits())), empty(std::vector<TokenStore>{});
  const TokenRows rows =
      TokenRows::joined(std::vector{first, empty, TokenRows(TokenStore::of_bytes(store_with_targets())), first});
  ASSERT_EQ(rows.size(), 10);
  EXPECT_EQ(rows.counts().num_tokens, 7 + 11 + 7);
  EXPECT_EQ(rows.counts().largest_id, 901);
  EXPECT_EQ(rows.lengths(), (Ids{3, 0, 4, 3, 3, 3, 2, 3, 0, 4}));
  EXPECT_TRUE(std::ranges::equal(rows.ids(2), Ids{8, 9, 10, 11}));
  EXPECT_EQ(rows.targets(5), (Ids{kNone, 900, 901}));
  EXPECT_EQ(rows.num_counted(9), 3);
  EXPECT_THROW(rows.length(10), Error);
  EXPECT_THROW(rows.length(-1), Error);
  EXPECT_EQ(empty.size(), 0);
}

}  // namespace
}  // namespace tessera
