#include "train/stop_signals.h"

#include <ATen/ops/zeros.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/exchange.h"

namespace tessera {
namespace {

std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler may use it");

void take_signal(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal) || signal != SIGINT) return;
  std::signal(SIGINT, SIG_DFL);  // takes effect when this handler returns; a shell then sees the signal
  std::raise(SIGINT);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &former_[i]);
    if (former_[i].sa_handler == SIG_IGN) continue;  // nohup, `&` in a script
    struct sigaction action {};
    action.sa_handler = take_signal;
    action.sa_flags = SA_RESTART;  // reads and writes in progress continue
    sigemptyset(&action.sa_mask);
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &former_[i], nullptr);
}

int StopSignals::received() {
  return first_signal;
}

StopVote::StopVote(World& world) : world_(world), link_(world.device(), /*pins=*/true) {
  const c10::OptionalStreamGuard beside(link_.upload_stream());
  asked_ = at::zeros({2}, at::dtype(at::kInt).device(world.device()));
  answer_ = link_.host_empty(2, at::kInt);
}

StepVote StopVote::after_step(const StepVote& own) {
  if (world_.size() == 1) return own;
  if (under_way_) {
    // Done long ago: a whole step has passed.
    if (world_.device().is_cpu()) under_way_->wait();
    arriving_.wait();
    const at::Tensor& agreed = world_.device().is_cpu() ? asked_ : answer_;
    held_ = {agreed[0].item<int>(), agreed[1].item<int>() != 0};
  }
  const StepVote agreed = held_;
  // On a GPU, runs on its own stream, so the computation does not wait for the other ranks.
  const c10::OptionalStreamGuard beside(link_.upload_stream());
  // Mostly all is zero, and nothing has to be written.
  if (own.signal != 0) asked_[0].fill_(own.signal);
  if (own.is_writing != held_.is_writing) asked_[1].fill_(own.is_writing ? 1 : 0);
  under_way_ = world_.all().all_reduce(asked_, ReduceOp::MAX, "stop");
  if (!world_.device().is_cpu()) {
    under_way_->wait();  // blocks that stream, not this thread
    arriving_ = link_.to_host(answer_, asked_);
  }
  return agreed;
}

int signal_of_any_rank(World& world) {
  int highest = 0;
  for (const std::vector<double>& of_rank : gather_numbers(world, {static_cast<double>(StopSignals::received())})) {
    highest = std::max(highest, static_cast<int>(of_rank[0]));
  }
  return highest;
}

std::string stop_signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace tessera
