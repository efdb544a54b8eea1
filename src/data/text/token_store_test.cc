#include "data/text/token_store.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "data/text/qa_sequence.h"
#include "support/test_folder.h"
#include "tessera/ignored_target.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

std::string small_store() {
  TokenStoreBuilder builder;
  builder.add(Ids{5, 6, 7}, Ids{kIgnoredTarget, 7, kIgnoredTarget}, false);
  builder.add(Ids{}, Ids{}, false);
  builder.add(Ids{8, 9, 10, 11}, Ids{9, 10, 11, kIgnoredTarget}, true);
  return builder.bytes("a key", 99);
}

Ids as_vector(std::span<const std::int32_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

TEST(TokenStore, GivesBackWhatWasPutIn) {
  const TestFolder folder;
  write_file_atomically(folder / "s", small_store());
  const auto mapped = TokenStore::open(folder / "s", "a key");
  ASSERT_TRUE(mapped.has_value());
  EXPECT_TRUE(mapped->is_mapped());
  const TokenStore in_memory = TokenStore::of_bytes(small_store());
  for (const TokenStore* store : {&*mapped, &in_memory}) {
    ASSERT_EQ(store->size(), 3);
    EXPECT_EQ(as_vector(store->ids(0)), (Ids{5, 6, 7}));
    EXPECT_EQ(as_vector(store->targets(0)), (Ids{kIgnoredTarget, 7, kIgnoredTarget}));
    EXPECT_EQ(store->length(1), 0);
    EXPECT_EQ(as_vector(store->ids(2)), (Ids{8, 9, 10, 11}));
    EXPECT_EQ(as_vector(store->targets(2)), (Ids{9, 10, 11, kIgnoredTarget}));
    const TokenCounts& counts = store->counts();
    EXPECT_EQ(counts.num_tokens, 7);
    EXPECT_EQ(counts.num_counted, 4);
    EXPECT_EQ(counts.num_truncated, 1);
    EXPECT_EQ(counts.longest, 4);
    EXPECT_EQ(counts.num_rows_of_file, 99);
  }
}

TEST(TokenStore, FindsEveryDamagedByteAndEveryCut) {
  const std::string good = small_store();
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

TEST(TokenStore, OpensNothingWhereNothingIs) {
  const TestFolder folder;
  std::string mistake = "old";
  EXPECT_FALSE(TokenStore::open(folder / "none", "k", &mistake).has_value());
  EXPECT_EQ(mistake, "");
  write_file_atomically(folder / "bad", "not a store");
  EXPECT_FALSE(TokenStore::open(folder / "bad", "k", &mistake).has_value());
  EXPECT_EQ(mistake, "it is shorter than its header");
}

TEST(TokenStore, BuilderRefusesTargetsOfAnotherLength) {
  TokenStoreBuilder builder;
  EXPECT_THROW(builder.add(Ids{1}, Ids{}, false), Error);
  EXPECT_THROW(builder.bytes(std::string(33, 'k'), 0), Error);
}

TEST(ContentHash, IsXxh64) {
  EXPECT_EQ(xxh64(""), 0xef46db3751d8e999);
  EXPECT_EQ(xxh64("abc"), 0x44bc2cf5ad770999);
  EXPECT_EQ(xxh64("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1);  // beyond 32 bytes, odd tail
  EXPECT_EQ(content_name("abc").size(), 32U);
  EXPECT_NE(content_name("abc"), content_name("abd"));
}

}  // namespace
}  // namespace tessera
