#include "model/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

namespace tessera {
namespace {

TEST(Dropout, KeepsTheMeanAndDropsItsShare) {
  const at::Tensor x = at::ones({200, 500}), y = dropout(x, 0.25, DropoutKeys(3), 0);
  EXPECT_NEAR((y == 0).to(at::kFloat).mean().item<float>(), 0.25, 0.01);
  EXPECT_NEAR(y.mean().item<float>(), 1, 0.01);
  EXPECT_FLOAT_EQ(y.max().item<float>(), 1 / 0.75f);
}

TEST(Dropout, MasksAreAFunctionOfSeedUnitAndPlace) {
  const at::Tensor x = at::ones({1000});
  const DropoutKeys keys(3);
  const at::Tensor y = dropout(x, 0.5, keys.child(1), 2);
  at::manual_seed(99);  // global state has no effect
  EXPECT_TRUE(at::equal(y, dropout(x, 0.5, keys.child(1), 2)));
  EXPECT_FALSE(at::equal(y, dropout(x, 0.5, keys.child(1), 1)));
  EXPECT_FALSE(at::equal(y, dropout(x, 0.5, keys.child(2), 2)));
  EXPECT_FALSE(at::equal(y, dropout(x, 0.5, DropoutKeys(4).child(1), 2)));
}

TEST(Dropout, GradientPassesWhereTheMaskDoes) {
  const at::Tensor x = at::randn({100}).requires_grad_();
  const at::Tensor y = dropout(x, 0.5, DropoutKeys(1), 0);
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::where(y == 0, at::zeros({100}), at::full({100}, 2.0f))));
}

TEST(Dropout, IsOffAtZeroAndWithoutKeys) {
  const at::Tensor x = at::randn({10});
  EXPECT_TRUE(dropout(x, 0, DropoutKeys(1), 0).is_same(x));
  EXPECT_TRUE(dropout(x, 0.5, DropoutKeys(), 0).is_same(x));
  EXPECT_FALSE(DropoutKeys().child(3).active());
}

TEST(SeededGenerator, SeedsTheDefaultGeneratorAndLeavesItAsItWas) {
  at::manual_seed(5);
  const at::Tensor expected = at::rand({8});
  at::manual_seed(5);
  at::Tensor first, second;
  {
    const SeededGenerator seeded(at::kCPU, 7);
    first = at::rand({8});
  }
  EXPECT_TRUE(at::equal(at::rand({8}), expected));
  {
    const SeededGenerator seeded(at::kCPU, 7);
    second = at::rand({8});
  }
  EXPECT_TRUE(at::equal(first, second));
}

// Ranks may be threads of one process.
TEST(SeededGenerator, ThreadsDoNotDisturbEachOther) {
  const auto draw = [](std::uint64_t key) {
    const SeededGenerator seeded(at::kCPU, key);
    at::Tensor all = at::rand({16});
    for (int i = 0; i < 20; ++i) all = all + at::rand({16});
    return all;
  };
  const at::Tensor expected[2] = {draw(0), draw(1)};
  bool equal[2] = {true, true};
  std::vector<std::thread> threads;
  for (std::uint64_t key = 0; key < 2; ++key) {
    threads.emplace_back([&, key] {
      for (int i = 0; i < 100; ++i) equal[key] = equal[key] && at::equal(draw(key), expected[key]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(equal[0]);
  EXPECT_TRUE(equal[1]);
}

}  // namespace
}  // namespace tessera
