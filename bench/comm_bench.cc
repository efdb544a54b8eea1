// Our MPI backend against MPI's own all-reduce in one run, and how well a collective overlaps with computation. Run
// under mpirun. Rank 0 prints; exit status 3: a mark was missed.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "tessera/world.h"

namespace {

using tessera::World;
using Clock = std::chrono::steady_clock;

constexpr double kLeastRatio = 0.9;    // of MPI's bandwidth, for 1 MB and more
constexpr double kMostOverlap = 1.25;  // together / the longer of the two

double seconds(const std::function<void()>& action) {
  const auto start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The slowest rank's time: a collective is done when all ranks are.
double slowest(double own) {
  double result = own;
  MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

double timed_together(const std::function<void()>& action) {
  MPI_Barrier(MPI_COMM_WORLD);
  return slowest(seconds(action));
}

// Alternates the two, so that a noisy moment hits both; takes medians over all rounds.
bool compare_all_reduce(World& world, std::int64_t bytes) {
  at::Tensor ours = at::zeros({bytes / 4}, at::kFloat), theirs = at::zeros({bytes / 4}, at::kFloat);
  const auto run_ours = [&] { world.all().all_reduce(ours)->wait(); };
  const auto run_theirs = [&] {
    MPI_Allreduce(MPI_IN_PLACE, theirs.data_ptr(), static_cast<int>(theirs.numel()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  };
  const int rounds = bytes >= (std::int64_t{64} << 20) ? 9 : bytes >= (1 << 20) ? 101 : 501;
  for (int i = 0; i < 3; ++i) {
    run_ours();
    run_theirs();
  }
  std::vector<double> our_times, their_times;
  for (int i = 0; i < rounds; ++i) {
    our_times.push_back(timed_together(run_ours));
    their_times.push_back(timed_together(run_theirs));
  }
  const double our_time = median(our_times), their_time = median(their_times), ratio = their_time / our_time;
  const bool counts = bytes >= (1 << 20);
  if (world.rank() == 0) {
    fmt::print("{:>12} {:>12.1f} {:>12.1f} {:>10.2f} {:>10.2f} {:>8.2f}  {}\n", bytes, our_time * 1e6, their_time * 1e6,
               static_cast<double>(bytes) / our_time / 1e9, static_cast<double>(bytes) / their_time / 1e9, ratio,
               !counts                ? "(latency: no mark)"
               : ratio >= kLeastRatio ? "ok"
                                      : "BELOW 0.9");
  }
  return !counts || ratio >= kLeastRatio;
}

// A 64 MB all-reduce and matrix products that take about as long: apart, then together.
bool measure_overlap(World& world) {
  at::Tensor data = at::zeros({(64 << 20) / 4}, at::kFloat);
  const at::Tensor a = at::randn({384, 384}), b = at::randn({384, 384});
  at::Tensor c = at::empty({384, 384});
  const auto collective = [&] { return world.all().all_reduce(data); };
  const auto products = [&](int count) {
    for (int i = 0; i < count; ++i) at::mm_out(c, a, b);
  };
  const auto median_of = [&](const std::function<void()>& action) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) times.push_back(timed_together(action));
    return median(times);
  };
  collective()->wait();
  products(10);
  int count = 20;
  for (int round = 0; round < 3; ++round) {  // gets closer to the collective's length each time
    const double length = median_of([&] { collective()->wait(); });
    count = std::max(1, static_cast<int>(std::lround(count * length / median_of([&] { products(count); }))));
  }
  // Runs all three in turn, so that a noisy moment hits all.
  std::vector<double> alone_times, computing_times, together_times;
  for (int i = 0; i < 21; ++i) {
    alone_times.push_back(timed_together([&] { collective()->wait(); }));
    computing_times.push_back(timed_together([&] { products(count); }));
    together_times.push_back(timed_together([&] {
      auto work = collective();
      products(count);
      work->wait();
    }));
  }
  const double alone = median(alone_times), computing = median(computing_times), together = median(together_times);
  const double ratio = together / std::max(alone, computing);
  const unsigned cores = std::thread::hardware_concurrency();
  const bool has_free_core = cores >= 2 * static_cast<unsigned>(world.size());
  if (world.rank() == 0) {
    fmt::print(
        "\nOverlap: 64 MB all-reduce {:.1f} ms, {} products {:.1f} ms, together {:.1f} ms = {:.2f} x the longer  {}\n",
        alone * 1e3, count, computing * 1e3, together * 1e3, ratio,
        !has_free_core          ? fmt::format("(no mark: {} ranks leave no free core of {})", world.size(), cores)
        : ratio <= kMostOverlap ? "ok"
                                : "ABOVE 1.25");
  }
  return !has_free_core || ratio <= kMostOverlap;
}

}  // namespace

int main() {
  tessera::WorldOptions options;
  options.backend = "mpi";
  return tessera::run_rank(options, [](World& world) {
    if (world.rank() == 0) {
      fmt::print(
          "\nall_reduce, in place, float32, {} ranks; medians, both in turn in this run; ratio = MPI's time / ours\n",
          world.size());
      fmt::print("{:>12} {:>12} {:>12} {:>10} {:>10} {:>8}\n", "bytes", "ours (us)", "MPI (us)", "ours GB/s",
                 "MPI GB/s", "ratio");
    }
    bool good = true;
    for (const std::int64_t bytes :
         {std::int64_t{4} << 10, std::int64_t{1} << 20, std::int64_t{64} << 20, std::int64_t{256} << 20}) {
      good &= compare_all_reduce(world, bytes);
    }
    good &= measure_overlap(world);
    return good ? 0 : 3;
  });
}
