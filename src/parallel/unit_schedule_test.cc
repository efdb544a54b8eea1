#include "parallel/unit_schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/text.h"

namespace tessera {
namespace {

// Writes down what a step does to units 'a', 'b', 'c' and the root 'R'. A '+' begins a gather, '-' releases, '~'
// releases until backward, '>' begins a reduction, '/' continues it across nodes, '<' waits for it.
class Trace : public UnitVerbs {
 public:
  explicit Trace(const SpreadOptions& options, bool across_nodes = false)
      : schedule_(options, placement_of(options), across_nodes, 4, *this) {}

  std::string step(bool last_micro_step = true) {
    words_.clear();
    schedule_.begin_pass();
    for (std::size_t i = 0; i < 3; ++i) {
      schedule_.begin_forward(i);
      note('f', i);
      schedule_.end_forward(i, /*has_backward=*/true);
    }
    schedule_.begin_backward(last_micro_step);
    for (std::size_t i = 3; i-- > 0;) {
      schedule_.begin_unit_backward(i);
      note('b', i);
      schedule_.gradient_is_complete(i);
      schedule_.end_unit_backward(i);
    }
    schedule_.end_backward();
    if (last_micro_step) schedule_.finish_reductions();
    return join(words_, " ");
  }

  void begin_gather(std::size_t unit) override {
    if (whole_.insert(unit).second) note('+', unit);
  }
  void wait_gather(std::size_t) override {}
  void release(std::size_t unit) override {
    if (whole_.erase(unit) > 0) note('-', unit);
  }
  void release_until_backward(std::size_t unit) override {
    if (whole_.erase(unit) > 0) note('~', unit);
  }
  void begin_reduce(std::size_t unit, bool) override { note('>', unit); }
  void continue_reduce(std::size_t unit) override { note('/', unit); }
  void wait_reduce(std::size_t unit) override { note('<', unit); }

 private:
  void note(char what, std::size_t unit) { words_.push_back(std::string{what, "abcR"[unit]}); }

  UnitSchedule schedule_;
  std::set<std::size_t> whole_;
  std::vector<std::string> words_;
};

TEST(UnitSchedule, FullShardGathersAheadAndKeepsTheLastUnit) {
  EXPECT_EQ(Trace({.strategy = "full_shard"}).step(),
            "+R +a +b fa ~a +c fb ~b fc +b bc >c -c +a bb <c >b -b ba <b >a -a <a >R -R <R");
}

TEST(UnitSchedule, ShardGradOpKeepsUnitsUntilBackwardHasPassed) {
  EXPECT_EQ(Trace({.strategy = "shard_grad_op"}).step(),
            "+R +a +b fa +c fb fc bc >c -c bb <c >b -b ba <b >a -a <a >R -R <R");
}

TEST(UnitSchedule, GathersNothingAheadUnlessAskedTo) {
  const SpreadOptions options{
      .strategy = "full_shard", .forward_prefetch = false, .backward_prefetch = BackwardPrefetch::kNone};
  EXPECT_EQ(Trace(options).step(), "+R +a fa ~a +b fb ~b +c fc bc >c -c +b bb <c >b -b +a ba <b >a -a <a >R -R <R");
}

TEST(UnitSchedule, AReductionAcrossNodesHasTwoUnitsTime) {
  EXPECT_EQ(Trace({.strategy = "hybrid_shard"}, /*across_nodes=*/true).step(),
            "+R +a +b fa ~a +c fb ~b fc +b bc >c -c +a bb >b /c -b ba <c >a /b -a <b >R /a -R <a <R");
}

TEST(UnitSchedule, TheRootStaysWholeBetweenMicroSteps) {
  Trace trace({.strategy = "full_shard"});
  EXPECT_TRUE(trace.step(false).ends_with("<a >R"));
  EXPECT_TRUE(trace.step(true).starts_with("+a"));
}

}  // namespace
}  // namespace tessera
