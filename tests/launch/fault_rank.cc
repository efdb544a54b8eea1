// A rank that fails as told: what a user's own program does at its worst. Started by fault_test.cc.
#include <ATen/ATen.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "core/error.h"
#include "tessera/world.h"

namespace {

using tessera::World;
using namespace std::chrono_literals;

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// The rank that misbehaves.
const int kCulprit = number_in("TEST_CULPRIT", 1);

// Records when it fails, so that the test can measure from there.
void note_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::ofstream(std::string(std::getenv("TEST_FOLDER")) + "/died")
      << std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void reduce(World& world, std::int64_t numel, const char* unit) {
  world.all().all_reduce(at::ones({numel}), tessera::ReduceOp::SUM, unit)->wait();
}

const std::map<std::string, std::function<int(World&)>> kFaults = {
    {"kill", [](World&) { return std::raise(SIGKILL); }},
    {"die", [](World&) { return std::raise(SIGKILL); }},
    {"segfault", [](World&) { return std::raise(SIGSEGV); }},
    {"throw", [](World&) -> int { throw tessera::Error("the disk is full"); }},
    {"exit", [](World&) -> int { std::exit(3); }},
    {"return", [](World&) { return 7; }},
    {"leave", [](World&) { return 0; }},
    {"hang",
     [](World&) {
       std::this_thread::sleep_for(1h);
       return 0;
     }},
    {"stop", [](World&) { return std::raise(SIGSTOP); }},
    {"size",
     [](World& world) {
       reduce(world, 1 << 10, "block.3");
       return 0;
     }},
    {"operation",
     [](World& world) {
       world.all().broadcast(at::ones({1 << 20}), 0, "block.3")->wait();
       return 0;
     }},
};

// Not a fault: all ranks end well, though none waits for its last operations.
int drop_works(World& world) {
  for (int i = 0; i < 300; ++i) world.all().all_reduce(at::ones({20'000}));
  if (world.rank() == 0) world.all().send(at::ones({1 << 22}), world.size() - 1);
  if (world.rank() == world.size() - 1) {
    std::this_thread::sleep_for(500ms);
    at::Tensor received = at::zeros({1 << 22});
    world.all().recv(received, 0)->wait();
    return received.sum().item<float>() == static_cast<float>(1 << 22) ? 0 : 1;
  }
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string fault = argv[1];
  const bool is_culprit = number_in("RANK", number_in("OMPI_COMM_WORLD_RANK", 0)) == kCulprit;
  if (fault == "never_comes" && is_culprit) std::this_thread::sleep_for(1h);
  if (fault == "ends_early" && is_culprit) return 0;
  tessera::WorldOptions options;
  // A rank that waits for a dead one must not depend on this limit; dropped works are no fault, even on a busy machine.
  options.comm_timeout = fault == "drop_works" || fault == "die" ? 60s : 2s;
  const bool is_missing = fault == "never_comes" || fault == "ends_early";
  options.start_timeout = is_missing ? 3s : std::getenv("TEST_STOP_IN") != nullptr ? 8s : 30s;
  if (fault == "settings") options.settings["learning_rate"] = is_culprit ? "0.1" : "0.01";
  return tessera::run_rank(options, [&](World& world) {
    if (fault == "drop_works") return drop_works(world);
    if (fault == "none") return 0;
    if (fault == "compute") std::this_thread::sleep_for(1h);
    // 'size' leaves this out: nothing larger may have been exchanged before it.
    if (fault != "size") reduce(world, 1 << 20, "block.2");
    if (world.rank() == kCulprit) {
      note_time();
      const int status = kFaults.at(fault)(world);
      if (fault != "stop") return status;
    }
    reduce(world, 1 << 20, "block.3");
    return 0;
  });
}
