#include "data/loading/prefetch_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>

namespace tessera {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

template <typename Item>
std::vector<Item> all_of(PrefetchLoader<Item>& loader) {
  std::vector<Item> items;
  while (std::optional<Item> item = loader.next()) items.push_back(std::move(*item));
  return items;
}

// Later items finish sooner, so that the order cannot be right by accident.
std::int64_t slow_square(std::int64_t i) {
  std::this_thread::sleep_for(microseconds((i * 7919) % 13 * 100));
  return i * i;
}

TEST(PrefetchLoader, GivesTheSameItemsInOrderForAnyNumberOfWorkersAndPlaces) {
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 3; i < 60; ++i) expected.push_back(i * i);
  for (const int workers : {0, 1, 2, 3, 8, 100}) {
    for (const std::int64_t ahead : {1, 2, 5, 1000}) {
      PrefetchLoader<std::int64_t> loader(3, 60, slow_square, {.num_workers = workers, .num_ahead = ahead});
      EXPECT_EQ(all_of(loader), expected) << workers << " workers, " << ahead << " ahead";
      EXPECT_EQ(loader.position(), 60);
      EXPECT_EQ(loader.next(), std::nullopt);  // and again
    }
  }
}

TEST(PrefetchLoader, NothingToDoEndsAtOnce) {
  for (const int workers : {0, 2}) {
    PrefetchLoader<int> none(5, 5, [](std::int64_t) { return 1; }, {.num_workers = workers});
    EXPECT_EQ(none.next(), std::nullopt);
    PrefetchLoader<int> backwards(5, 2, [](std::int64_t) { return 1; }, {.num_workers = workers});
    EXPECT_EQ(backwards.next(), std::nullopt);
  }
}

// Counts live objects, wherever they are.
struct Counted {
  explicit Counted(std::atomic<int>& count) : living(&count) { ++*living; }
  Counted(Counted&& other) noexcept : living(std::exchange(other.living, nullptr)) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(living, other.living);
    return *this;
  }
  ~Counted() {
    if (living != nullptr) --*living;
  }
  std::atomic<int>* living;
};

TEST(PrefetchLoader, HoldsNoMoreItemsThanItMay) {
  std::atomic<int> living = 0;
  int most = 0;
  PrefetchLoader<Counted> loader(0, 200, [&](std::int64_t) { return Counted(living); },
                                 {.num_workers = 4, .num_ahead = 3});
  while (living < 3) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));  // time enough to make too many
  EXPECT_EQ(living, 3);
  while (std::optional<Counted> item = loader.next()) most = std::max(most, living.load());
  EXPECT_LE(most, 3 + 1);  // the one handed out
  EXPECT_EQ(living, 0);
}

TEST(PrefetchLoader, GivesWhatHasBeenMadeWithoutWaiting) {
  std::atomic<bool> may_go_on = false, is_at_the_last = false;
  const auto make = [&](std::int64_t i) {
    while (i == 1 && !may_go_on) std::this_thread::yield();
    if (i == 2) throw Error("broken");
    if (i == 3) is_at_the_last = true;
    return i;
  };
  PrefetchLoader<std::int64_t> loader(0, 4, make, {.num_workers = 1, .num_ahead = 4});
  const auto ask_until_made = [&] {
    std::optional<std::int64_t> item;
    while (!(item = loader.next_if_made())) std::this_thread::yield();
    return *item;
  };
  EXPECT_EQ(ask_until_made(), 0);
  EXPECT_EQ(loader.next_if_made(), std::nullopt);
  EXPECT_EQ(loader.position(), 1);
  may_go_on = true;
  EXPECT_EQ(ask_until_made(), 1);
  while (!is_at_the_last) std::this_thread::yield();  // the broken one has been tried
  EXPECT_EQ(loader.next_if_made(), std::nullopt);
  EXPECT_THROW(loader.next(), Error);
  EXPECT_EQ(ask_until_made(), 3);
  EXPECT_EQ(loader.next_if_made(), std::nullopt);  // that was all
  PrefetchLoader<std::int64_t> without_workers(0, 3, make, {.num_workers = 0, .num_ahead = 3});
  EXPECT_EQ(without_workers.next_if_made(), std::nullopt);
  EXPECT_EQ(without_workers.next(), 0);
}

TEST(PrefetchLoader, AnErrorComesOutInTheStepThatNeededTheItemAndNamesIt) {
  for (const int workers : {0, 1, 4}) {
    PrefetchLoader<std::int64_t> loader(0, 10,
                                        [](std::int64_t i) -> std::int64_t {
                                          if (i == 3) throw UsageError("no JPEG");
                                          if (i == 4) throw std::out_of_range("too far");
                                          if (i == 5) throw std::bad_alloc();
                                          return i;
                                        },
                                        {.num_workers = workers, .num_ahead = 8, .name_of = [](std::int64_t i) {
                                           return "image " + std::to_string(i);
                                         }});
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(loader.next(), i);
    const auto message = [&]() -> std::string {
      try {
        loader.next();
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing was thrown";
    };
    EXPECT_EQ(message(), "image 3: no JPEG");
    EXPECT_EQ(message(), "image 4: too far");
    EXPECT_EQ(message(), "image 5: out of memory");
    for (std::int64_t i = 6; i < 10; ++i) EXPECT_EQ(loader.next(), i);  // the rest is intact
    EXPECT_EQ(loader.next(), std::nullopt);
  }
}

TEST(PrefetchLoader, KeepsTheExitStatusOfAnErrorAndPassesUnknownThingsOn) {
  PrefetchLoader<int> loader(0, 2,
                             [](std::int64_t i) -> int {
                               if (i == 0) throw UsageError("wrong");
                               throw 42;
                             },
                             {.name_of = [](std::int64_t) { return "it"; }});
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kUsage);
  }
  EXPECT_THROW(loader.next(), int);
}

TEST(PrefetchLoader, AnErrorIsNotLostWhereItsItemCannotBeNamed) {
  PrefetchLoader<int> loader(0, 1, [](std::int64_t) -> int { throw UsageError("the reason"); },
                             {.name_of = [](std::int64_t) -> std::string { throw std::out_of_range("no name"); }});
  try {
    loader.next();
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "the reason");
  }
}

TEST(PrefetchLoader, EndsCleanlyAtAnyMoment) {
  for (int taken = 0; taken < 40; ++taken) {
    std::atomic<int> living = 0;
    {
      PrefetchLoader<Counted> loader(0, 40,
                                     [&](std::int64_t i) {
                                       std::this_thread::sleep_for(microseconds(i % 5 * 50));
                                       if (i % 11 == 10) throw Error("now and then");
                                       return Counted(living);
                                     },
                                     {.num_workers = 1 + taken % 4, .num_ahead = 1 + taken % 7});
      for (int i = 0; i < taken; ++i) {
        try {
          loader.next();
        } catch (const Error&) {
        }
      }
    }
    EXPECT_EQ(living, 0);
  }
}

TEST(PrefetchLoader, TakesItemsThatCanOnlyBeMoved) {
  PrefetchLoader<std::unique_ptr<int>> loader(0, 5, [](std::int64_t i) { return std::make_unique<int>(i); },
                                              {.num_workers = 2});
  int sum = 0;
  while (auto item = loader.next()) sum += **item;
  EXPECT_EQ(sum, 10);
}

TEST(PrefetchLoader, WorkersWorkAtTheSameTime) {
  std::latch all_four(4);  // an item finishes only when four are in progress
  PrefetchLoader<int> loader(0, 4,
                             [&](std::int64_t) {
                               all_four.arrive_and_wait();
                               return 0;
                             },
                             {.num_workers = 4, .num_ahead = 4});
  EXPECT_EQ(all_of(loader).size(), 4U);
}

TEST(PrefetchLoader, RefusesOptionsThatCannotBe) {
  const auto make = [](std::int64_t) { return 0; };
  EXPECT_THROW(PrefetchLoader<int>(0, 1, make, {.num_workers = -1}), Error);
  EXPECT_THROW(PrefetchLoader<int>(0, 1, make, {.num_ahead = 0}), Error);
}

}  // namespace
}  // namespace tessera
