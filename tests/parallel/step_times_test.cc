// Where a step's time goes, on runs with a delay of known size: the right part grows by it, and no other.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "comm/thread_world.h"
#include "core/host.h"
#include "listeners/end_summary.h"
#include "listeners/rank_records.h"
#include "monitor/utilisation.h"
#include "parallel/small_model.h"
#include "train/trainer.h"

namespace tessera {
namespace {

constexpr std::int64_t kTimedSteps = 8;

void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

struct Delays {
  int load_ms = 0, forward_ms = 0;  // of one rank
  int rank = 1;
  int link_ms = 0;  // of every collective
};

// Collectives reach the others this much later.
class SlowBackend : public ThreadBackend {
 public:
  SlowBackend(int rank, int size, std::shared_ptr<ThreadHub> hub, int delay_ms)
      : ThreadBackend(rank, size, std::move(hub)), delay_ms_(delay_ms) {}
  ~SlowBackend() override {
    if (last_.joinable()) last_.join();
  }

 protected:
  void submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) override {
    // One after another, as on a link.
    last_ = std::thread(
        [this, operation = std::move(operation), work = std::move(work), before = std::exchange(last_, {})]() mutable {
          if (before.joinable()) before.join();
          pause_ms(delay_ms_);
          ThreadBackend::submit(std::move(operation), std::move(work));
        });
  }

 private:
  int delay_ms_;
  std::thread last_;
};

class SlowTask : public TrainTask {
 public:
  SlowTask(World& world, const Delays& delays) : world_(world), delays_(delays) {}
  UnitModel& model() override { return model_; }
  std::int64_t num_rows() const override { return kTimedSteps * world_.size(); }
  std::int64_t num_batches_after(std::int64_t /*num_taken*/) const override { return kTimedSteps; }
  std::int64_t num_eval_rows() const override { return 0; }
  UpdateShape begin_update(const Update&) override { return {1, 12 * world_.size()}; }
  void load() override {
    if (world_.rank() == delays_.rank) pause_ms(delays_.load_ms);
  }
  at::Tensor loss_sum(UnitRunner& runner, std::uint64_t, double) override {
    if (world_.rank() == delays_.rank) pause_ms(delays_.forward_ms);
    const at::Tensor ids = at::arange(12, at::kLong).remainder(SmallModel::kVocabulary);
    return model_.loss(ids, ids, runner);
  }
  Totals evaluate(UnitRunner&, const std::function<void(std::int64_t, std::int64_t)>&) override { return {}; }
  LogRecord metrics(const std::vector<double>&) const override { return {}; }

 private:
  World& world_;
  Delays delays_;
  SmallModel model_;
};

std::vector<RankRecord> ranks_of_run(const Delays& delays, int num_ranks = 3) {
  std::vector<RankRecord> ranks;
  const auto make = [&](int rank, int size, std::shared_ptr<ThreadHub> hub) -> c10::intrusive_ptr<ThreadBackend> {
    if (delays.link_ms == 0) return c10::make_intrusive<ThreadBackend>(rank, size, std::move(hub));
    return c10::make_intrusive<SlowBackend>(rank, size, std::move(hub), delays.link_ms);
  };
  run_thread_ranks(num_ranks, {}, make, [&](World& world) {
    TrainSettings settings;
    settings.spread.strategy = "zero2";
    settings.optimizer.optim = "adamw_torch_fused";
    settings.optimizer.learning_rate = 1e-3;
    settings.schedule.kind = "constant";
    settings.loop.batch_size = 1;
    settings.loop.num_epochs = 1;
    settings.loop.merge_accumulation = MergeAccumulation::kOff;
    settings.flow.saving = Interval::kNo;
    SlowTask task(world, delays);
    Listeners nobody;
    Trainer trainer(world, task, settings, plan_steps(task, settings, world.size()), {}, nobody);
    trainer.run();
    const std::vector<std::string> devices(static_cast<std::size_t>(world.size()), "cpu");
    const auto gathered = gather_rank_records(world, trainer.step().engine().clock().times(), {}, devices);
    if (world.rank() == 0) ranks = gathered;
  });
  return ranks;
}

double ms_of(const RankRecord& rank, const std::string& name) {
  for (const PartTime& part : rank.parts) {
    if (part.name == name) return part.mean_ms;
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

// Threads of a busy machine wake up late: a part may be longer than its delay, by far less than the delay.
void expect_delay(double ms, double expected_ms) {
  EXPECT_GE(ms, expected_ms);
  EXPECT_LT(ms, 1.5 * expected_ms);
}

TEST(StepTimesOfARun, ASlowLoaderIsDataWait) {
  const std::vector<RankRecord> ranks = ranks_of_run({.load_ms = 40});
  expect_delay(ms_of(ranks[1], "data wait"), 40);
  EXPECT_LT(ms_of(ranks[0], "data wait"), 10);
  expect_delay(ms_of(ranks[0], "communication"), 35);  // what the others wait for it
  EXPECT_LT(ms_of(ranks[1], "communication"), 20);
  const auto slow = slow_rank_text(ranks);
  ASSERT_TRUE(slow.has_value());
  EXPECT_TRUE(slow->starts_with("rank 1 is ")) << *slow;
  EXPECT_TRUE(slow->ends_with("(data wait)")) << *slow;
}

TEST(StepTimesOfARun, ASlowRankIsNamedByWhatIsSlow) {
  const std::vector<RankRecord> ranks = ranks_of_run({.forward_ms = 40, .rank = 2});
  expect_delay(ms_of(ranks[2], "forward"), 40);
  EXPECT_LT(ms_of(ranks[0], "forward"), 20);
  const auto slow = slow_rank_text(ranks);
  ASSERT_TRUE(slow.has_value());
  EXPECT_TRUE(slow->starts_with("rank 2 is ")) << *slow;
  EXPECT_TRUE(slow->ends_with("(forward)")) << *slow;
}

// zero2: the last of several reductions, the gather of the norm and the last gather of parameters are waited for.
TEST(StepTimesOfARun, ASlowLinkIsCommunication) {
  const double fast = ms_of(ranks_of_run({})[0], "communication");
  const std::vector<RankRecord> ranks = ranks_of_run({.link_ms = 10});
  for (const RankRecord& rank : ranks) {
    EXPECT_GE(ms_of(rank, "communication"), fast + 30) << "rank " << rank.rank;
    EXPECT_GE(ms_of(rank, "communication"), 0.8 * *rank.numbers.number("step_mean_ms"));
  }
}

TEST(StepTimesOfARun, PartsAddUpToTheStep) {
  for (const RankRecord& rank : ranks_of_run({.load_ms = 5, .forward_ms = 5, .link_ms = 2})) {
    double sum = 0;
    for (const PartTime& part : rank.parts) sum += part.mean_ms;
    EXPECT_NEAR(sum, *rank.numbers.number("step_mean_ms"), 0.02 * sum);
    EXPECT_EQ(rank.numbers.number("steps"), kTimedSteps - 1);
  }
}

}  // namespace
}  // namespace tessera
