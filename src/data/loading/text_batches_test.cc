#include "data/loading/text_batches.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "data/loading/sampler.h"
#include "data/text/token_store_builder.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

// Row i has i + 1 tokens: 100 i, 100 i + 1, ...; the last two targets count.
TokenStore numbered_store(int num_rows) {
  TokenStoreBuilder builder;
  for (int row = 0; row < num_rows; ++row) {
    Ids ids, targets(static_cast<std::size_t>(row) + 1, kIgnoredTarget);
    for (int i = 0; i <= row; ++i) ids.push_back(100 * row + i);
    for (int i = std::max(0, row - 2); i < row; ++i) targets[static_cast<std::size_t>(i)] = 100 * row + i + 1;
    builder.add(ids, targets, false);
  }
  return TokenStore::of_bytes(builder.bytes("test", num_rows));
}

std::vector<std::int64_t> longs(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(), tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}

TEST(TextBatches, RowsLieEndToEndWithTheirOwnPositions) {
  const TokenStore store = numbered_store(5);
  const std::vector<std::int64_t> rows = {3, 0, 2};
  const PackedBatch batch = pack_rows(store, rows);
  EXPECT_EQ(longs(batch.input_ids), (std::vector<std::int64_t>{300, 301, 302, 303, 0, 200, 201, 202}));
  EXPECT_EQ(longs(batch.positions), (std::vector<std::int64_t>{0, 1, 2, 3, 0, 0, 1, 2}));
  EXPECT_EQ(longs(batch.targets), (std::vector<std::int64_t>{-100, 302, 303, -100, -100, 201, 202, -100}));
  const std::int32_t* starts = batch.cu_seqlens.const_data_ptr<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(starts, starts + batch.cu_seqlens.numel()),
            (std::vector<std::int32_t>{0, 4, 5, 8}));
  EXPECT_EQ(batch.max_seqlen, 4);
  EXPECT_EQ(batch.num_counted, 4);
}

TEST(TextBatches, AreFilledUpToAMultiple) {
  const TokenStore store = numbered_store(5);
  const PackedBatch batch = pack_rows(store, std::vector<std::int64_t>{2, 0}, {.multiple = 8});
  EXPECT_EQ(longs(batch.input_ids), (std::vector<std::int64_t>{200, 201, 202, 0, 0, 0, 0, 0}));
  EXPECT_EQ(longs(batch.positions), (std::vector<std::int64_t>{0, 1, 2, 0, 0, 1, 2, 0})) << "none longer than a row";
  EXPECT_EQ(longs(batch.targets), (std::vector<std::int64_t>{201, 202, -100, -100, -100, -100, -100, -100}));
  const std::int32_t* starts = batch.cu_seqlens.const_data_ptr<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(starts, starts + batch.cu_seqlens.numel()),
            (std::vector<std::int32_t>{0, 3, 4, 7, 8}));
  EXPECT_EQ(batch.num_counted, 2);
  EXPECT_EQ(longs(batch.counted), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(pack_rows(store, std::vector<std::int64_t>{3}, {.multiple = 4}).input_ids.numel(), 4) << "full already";
}

std::vector<std::int32_t> starts_of(const PackedBatch& batch) {
  const std::int32_t* starts = batch.cu_seqlens.const_data_ptr<std::int32_t>();
  return {starts, starts + batch.cu_seqlens.numel()};
}

// Rows of 3 tokens, 10 i, 10 i + 1, 10 i + 2; of the second, only the last counts.
TokenStore store_of_threes() {
  TokenStoreBuilder builder;
  for (const std::int32_t row : {0, 1, 2}) {
    const Ids ids = {10 * row, 10 * row + 1, 10 * row + 2};
    builder.add_counted(ids, row == 1 ? std::vector<bool>{false, false, true} : std::vector<bool>{}, false);
  }
  return TokenStore::of_bytes(builder.bytes("test", 3));
}

TEST(TextBatches, APieceOfABinIsASequence) {
  const TokenRows rows(store_of_threes());
  const PackedRows bins = pack_wrapped(rows.lengths(), {.max_length = 4});
  const PackedBatch batch = pack_bins(rows, bins, std::vector<std::int64_t>{1, 0});
  EXPECT_EQ(longs(batch.input_ids), (std::vector<std::int64_t>{11, 12, 20, 21, 0, 1, 2, 10}));
  EXPECT_EQ(longs(batch.positions), (std::vector<std::int64_t>{0, 1, 0, 1, 0, 1, 2, 0}));
  EXPECT_EQ(longs(batch.targets), (std::vector<std::int64_t>{12, -100, 21, -100, 1, 2, -100, -100}));
  EXPECT_EQ(starts_of(batch), (std::vector<std::int32_t>{0, 2, 4, 7, 8}));
  EXPECT_EQ(batch.max_seqlen, 3);
  EXPECT_EQ(batch.num_counted, 4);
  EXPECT_EQ(num_counted_in(rows, bins.bin(1)) + num_counted_in(rows, bins.bin(0)), 4);
}

TEST(TextBatches, WithAttentionAcrossDocumentsABinIsASequence) {
  const TokenRows rows(store_of_threes());
  const PackedRows bins = pack_wrapped(rows.lengths(), {.max_length = 4});
  const PackedBatch batch =
      pack_bins(rows, bins, std::vector<std::int64_t>{1, 0, 2}, {.attention_across_documents = true});
  EXPECT_EQ(longs(batch.positions), (std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3, 0}));
  // 12 predicts 20, the next row's first token; 2 does not predict 10, which does not count.
  EXPECT_EQ(longs(batch.targets), (std::vector<std::int64_t>{12, 20, 21, -100, 1, 2, -100, -100, -100}));
  EXPECT_EQ(longs(batch.counted), (std::vector<std::int64_t>{0, 1, 2, 4, 5}));
  EXPECT_EQ(starts_of(batch), (std::vector<std::int32_t>{0, 4, 8, 9}));
  EXPECT_EQ(num_counted_in(rows, bins.bin(1), true), 3);
}

TEST(TextBatches, BinsOfWhichNothingCountsAreLeftOut) {
  const TokenStore store = numbered_store(5);
  // Of row 4's five targets the last two count; row 0 is a single token.
  const PackedRows bins({0, 1, 2, 3, 5}, {{4, 0, 2}, {4, 2, 3}, {0, 0, 1}, {0, 0, 1}, {1, 0, 2}});
  const auto sizes = [&](const CountedBins& options) {
    const PackedRows counted = counted_bins(store, bins, options);
    std::vector<std::size_t> all;
    for (std::int64_t bin = 0; bin < counted.size(); ++bin) all.push_back(counted.bin(bin).size());
    return all;
  };
  EXPECT_EQ(sizes({}), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(sizes({.takes_long_pieces = true}), (std::vector<std::size_t>{1, 1, 2}));
}

TEST(TextBatches, ALoaderDrawsBinsAsASamplerOrdersThem) {
  const TokenRows rows(numbered_store(40));
  const auto bins = std::make_shared<const PackedRows>(pack_best_fit(rows.lengths(), 50, 1));
  Sampler sampler({.num_rows = bins->size(), .seed = 42});
  const auto batches = sampler.batches(2);
  auto loader = text_loader(rows, bins, batches, 1, {.num_workers = 2, .num_ahead = 4});
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_TRUE(at::equal(batch->input_ids, pack_bins(rows, *bins, batches[i]).input_ids));
  }
  EXPECT_FALSE(loader.next().has_value());
}

TEST(TextBatches, RefusesRowsThatAreNotThere) {
  const TokenStore store = numbered_store(2);
  EXPECT_THROW(pack_rows(store, std::vector<std::int64_t>{2}), Error);
  EXPECT_THROW(pack_rows(store, std::vector<std::int64_t>{-1}), Error);
  EXPECT_THROW(text_loader(store, {{0}}, -1), Error);
  EXPECT_FALSE(text_loader(store, {{0}}, 7).next().has_value());  // an epoch that is over
  auto loader = text_loader(store, {{0}, {7}, {1}});
  EXPECT_TRUE(loader.next().has_value());
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "batch 1: a batch asks for row 7 of 2");
  }
  EXPECT_TRUE(loader.next().has_value());
}

TEST(TextBatches, TheLoaderGivesTheSameBatchesForAnyNumberOfWorkersFromAnyBatchOn) {
  const TokenStore store = numbered_store(40);
  Sampler sampler({.num_rows = 40, .seed = 42});
  const auto batches = sampler.batches(3);
  ASSERT_EQ(batches.size(), 14U);
  for (const int workers : {0, 1, 3}) {
    for (const std::int64_t begin : {0, 5, 14}) {
      auto loader = text_loader(store, batches, begin, {.num_workers = workers, .num_ahead = 4});
      for (std::size_t i = static_cast<std::size_t>(begin); i < batches.size(); ++i) {
        const auto batch = loader.next();
        ASSERT_TRUE(batch.has_value());
        EXPECT_TRUE(at::equal(batch->input_ids, pack_rows(store, batches[i]).input_ids));
      }
      EXPECT_FALSE(loader.next().has_value());
    }
  }
}

}  // namespace
}  // namespace tessera
