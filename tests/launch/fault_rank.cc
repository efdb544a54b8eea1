// A rank that goes wrong as it is told: what a user's own program does at its worst. Started by fault_test.cc.
#include <ATen/ATen.h>

#include <csignal>
#include <string>
#include <thread>

#include "core/error.h"
#include "tessera/world.h"

namespace {

using tessera::World;

// The rank that misbehaves in each case.
constexpr int kCulprit = 1;

void misbehave(World& world, const std::string& fault) {
  at::Tensor tensor = at::ones({1 << 20});
  if (fault == "kill") {
    std::raise(SIGKILL);
  } else if (fault == "segfault") {
    std::raise(SIGSEGV);
  } else if (fault == "throw") {
    throw tessera::Error("the disk is full");
  } else if (fault == "hang") {
    std::this_thread::sleep_for(std::chrono::hours(1));
  } else if (fault == "stop") {
    std::raise(SIGSTOP);
  } else if (fault == "size") {
    world.all().all_reduce(at::ones({1 << 10}), tessera::ReduceOp::SUM, "block.3")->wait();
  } else if (fault == "operation") {
    world.all().broadcast(tensor, 0, "block.3")->wait();
  } else {
    throw tessera::UsageError("unknown fault " + fault);
  }
}

}  // namespace

int main(int, char** argv) {
  tessera::WorldOptions options;
  options.comm_timeout = std::chrono::seconds(2);
  return tessera::run_rank(options, [&](World& world) {
    at::Tensor tensor = at::ones({1 << 20});
    world.all().all_reduce(tensor, tessera::ReduceOp::SUM, "block.2")->wait();
    if (world.rank() == kCulprit) misbehave(world, argv[1]);
    world.all().all_reduce(tensor, tessera::ReduceOp::SUM, "block.3")->wait();
    return 0;
  });
}
