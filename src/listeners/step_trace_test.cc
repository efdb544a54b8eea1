#include "listeners/step_trace.h"

#include <ATen/ops/ones.h>

#include "support/small_run.h"

namespace tessera {
namespace {

class Trace : public WithFolder {};

TEST_F(Trace, EndsAfterTheStepThatFillsIt) {
  run_thread_ranks(1, {}, [&](World& world) {
    const std::filesystem::path file = folder_ / "trace.json.gz";
    StepTrace trace(file, 1, 3, world, /*most_bytes=*/200);
    trace.on_train_begin({});
    RunMoment at;
    at.step = 1;
    trace.on_step_end(at);
    EXPECT_FALSE(std::filesystem::exists(file)) << "nothing was computed: there is room";
    for (int i = 0; i < 20; ++i) at::ones({2});
    at.step = 2;
    trace.on_step_end(at);
    ASSERT_TRUE(std::filesystem::exists(file));
    std::filesystem::remove(file);
    at.step = 3;
    trace.on_step_end(at);
    EXPECT_FALSE(std::filesystem::exists(file)) << "a full trace does not begin again";
  });
}

}  // namespace
}  // namespace tessera
