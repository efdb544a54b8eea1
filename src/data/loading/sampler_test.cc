#include "data/loading/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "support/row_hash.h"

namespace tessera {
namespace {

using Indices = std::vector<std::int64_t>;

const Json& sampler_references() {
  static const Json all = read_json_file(std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "loading" / "samplers.json");
  return all;
}

std::string hash_of(const Indices& numbers) {
  return hash_of_numbers<std::int64_t>(numbers);
}

void append(Indices& all, const Indices& more) {
  all.insert(all.end(), more.begin(), more.end());
}

TEST(Sampler, IsTorchsDistributedSamplerIndexForIndex) {
  ASSERT_GT(sampler_references()["distributed"].size(), 400U);
  for (const Json& c : sampler_references()["distributed"]) {
    SamplerOptions options;
    options.num_rows = c[0];
    options.num_ranks = c[1];
    options.tail = c[2] == 1 ? Tail::kDrop : Tail::kRepeat;
    options.order = c[3] == 1 ? Order::kShuffled : Order::kSequential;
    options.seed = c[4];
    Indices everyone;
    for (options.rank = 0; options.rank < options.num_ranks; ++options.rank) {
      Sampler sampler(options);
      sampler.start_epoch(c[5]);
      EXPECT_EQ(sampler.size(), c[6].get<std::int64_t>());
      append(everyone, sampler.indices());
    }
    EXPECT_EQ(hash_of(everyone), c[7].get<std::string>()) << c.dump();
  }
  Sampler one({.num_rows = 10, .rank = 1, .num_ranks = 4, .seed = 42});
  EXPECT_EQ(one.indices(), sampler_references()["first_of_distributed"].get<Indices>());
}

TEST(Sampler, IsTheTrainersOnAnyNumberOfRanks) {
  ASSERT_GT(sampler_references()["trainer"].size(), 400U);
  for (const Json& c : sampler_references()["trainer"]) {
    SamplerOptions options;
    options.num_rows = c[0];
    options.num_ranks = c[1];
    options.share = Share::kBatches;
    options.batch_size = c[2];
    options.tail = c[3] == 1 ? Tail::kDrop : Tail::kRepeat;
    options.order = c[4] == 1 ? Order::kShuffled : Order::kSequential;
    options.seed = c[5];
    for (std::size_t e = 0; e < 2; ++e) {
      Indices indices, sizes;
      for (options.rank = 0; options.rank < options.num_ranks; ++options.rank) {
        Sampler sampler(options);
        sampler.start_epoch(e == 0 ? 0 : 2);
        for (const Indices& batch : sampler.batches(options.batch_size)) {
          append(indices, batch);
          sizes.push_back(std::ssize(batch));
        }
      }
      EXPECT_EQ(hash_of(indices), c[6][e].get<std::string>()) << c.dump();
      EXPECT_EQ(hash_of(sizes), c[7][e].get<std::string>()) << c.dump();
    }
  }
}

TEST(Sampler, GoesOnAtAnyStepAsIfItHadNotStopped) {
  for (const Tail tail : {Tail::kRepeat, Tail::kDrop, Tail::kUneven}) {
    for (const Share share : {Share::kIndices, Share::kBatches}) {
      const SamplerOptions options{
          .num_rows = 103, .rank = 2, .num_ranks = 4, .seed = 7, .tail = tail, .share = share, .batch_size = 3};
      Sampler whole(options);
      whole.start_epoch(5);
      const Indices all = whole.indices();
      for (std::int64_t taken = 0; taken <= std::ssize(all); taken += 3) {
        Sampler resumed(options);
        resumed.start_epoch(5, taken * options.num_ranks);
        const Indices rest = resumed.indices();
        EXPECT_EQ(rest, Indices(all.begin() + std::min<std::int64_t>(taken, std::ssize(all)), all.end())) << taken;
      }
    }
  }
}

TEST(Sampler, GoesOnWithAnotherNumberOfRanksTakingEachRowOnce) {
  Indices taken;
  for (int rank = 0; rank < 4; ++rank) {
    Sampler sampler({.num_rows = 1000, .rank = rank, .num_ranks = 4, .seed = 1, .tail = Tail::kUneven});
    const Indices own = sampler.indices();
    append(taken, Indices(own.begin(), own.begin() + 100));
  }
  for (int rank = 0; rank < 3; ++rank) {
    Sampler sampler({.num_rows = 1000, .rank = rank, .num_ranks = 3, .seed = 1, .tail = Tail::kUneven});
    sampler.start_epoch(0, 400);
    append(taken, sampler.indices());
  }
  EXPECT_EQ(taken.size(), 1000U);
  EXPECT_EQ(std::set<std::int64_t>(taken.begin(), taken.end()).size(), 1000U);
}

TEST(Sampler, UnevenGivesEachRowOnce) {
  for (const std::int64_t num_rows : {0, 1, 5, 16, 17}) {
    std::multiset<std::int64_t> once;
    for (int rank = 0; rank < 8; ++rank) {
      Sampler uneven({.num_rows = num_rows, .rank = rank, .num_ranks = 8, .tail = Tail::kUneven});
      for (const std::int64_t index : uneven.indices()) once.insert(index);
    }
    EXPECT_EQ(std::ssize(once), num_rows);
    EXPECT_EQ(std::set<std::int64_t>(once.begin(), once.end()).size(), once.size());
  }
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(Sampler({.num_rows = 3, .rank = 2, .num_ranks = 2}), Error);
  EXPECT_THROW(Sampler({.num_rows = -1}), Error);
  Sampler sampler({.num_rows = 3});
  EXPECT_THROW(sampler.index(3), Error);
  EXPECT_THROW(sampler.start_epoch(-1), Error);
  EXPECT_THROW(sampler.start_epoch(0, -1), Error);
  EXPECT_THROW(sampler.batches(0), Error);
}

}  // namespace
}  // namespace tessera
