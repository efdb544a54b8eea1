#include "listeners/step_trace.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include "comm/gpu_support.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"

namespace tessera {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

constexpr int kFirstLane = 1'000'000;  // thread numbers that no thread has

// How large a trace becomes is known only at its end, so operators are counted. One takes some 20 bytes of the
// compressed file; on a GPU, with its launch and its kernel, 47 were seen.
constexpr std::int64_t kBytesPerOperator = 20, kBytesPerGpuOperator = 60;
std::atomic<std::int64_t> num_traced_operators = 0;

std::unique_ptr<at::ObserverContext> count_operator(const at::RecordFunction&) {
  num_traced_operators.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double us_of(Clock::time_point time) {
  return now_us() - std::chrono::duration<double, std::micro>(Clock::now() - time).count();
}

// Kineto's times are microseconds since a base that the file names.
double base_us(const std::string& trace) {
  const std::string key = "\"baseTimeNanoseconds\":";
  const std::size_t at = trace.find(key);
  return at == std::string::npos ? 0 : std::stod(trace.substr(at + key.size(), 32)) / 1000;
}

std::string quoted(const std::string& text) {
  return json_text(Json(text));
}

}  // namespace

std::filesystem::path trace_path(const std::filesystem::path& output_dir, int rank) {
  return output_dir / fmt::format("trace_rank-{}.json.gz", rank);
}

StepTrace::StepTrace(std::filesystem::path file, std::int64_t first, std::int64_t last, World& world,
                     std::int64_t most_bytes)
    : file_(std::move(file)),
      first_(first),
      last_(last),
      most_bytes_(most_bytes),
      most_operators_(most_bytes / (world.device().is_cuda() ? kBytesPerGpuOperator : kBytesPerOperator)),
      world_(world) {
  // Else Kineto reports as an error that a machine has no GPU.
  if (world_.device().is_cpu()) ::setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
}

StepTrace::~StepTrace() {
  if (!is_running_) return;
  world_.recorder().observe({});
  at::removeCallback(counter_);
  profiler::disableProfiler();
}

void StepTrace::start_before(std::int64_t step) {
  if (step < first_ || step > last_ || is_running_ || is_full_) return;
  first_traced_ = step;
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (world_.device().is_cuda()) activities.insert(ActivityType::CUDA);
  finish_kernels();
  const ProfilerConfig config(ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities, {});
  num_traced_operators = 0;
  counter_ = at::addGlobalCallback(at::RecordFunctionCallback(count_operator));
  world_.recorder().observe([this](const FlightEntry& entry) { add(entry); });
  is_running_ = true;
  step_begin_us_ = now_us();
}

void StepTrace::on_step_end(const RunMoment& at) {
  if (is_running_) {
    const double begin = std::exchange(step_begin_us_, now_us());
    last_traced_ = at.step;
    const std::lock_guard lock(mutex_);
    // The name by which analysers know an iteration.
    spans_.push_back({"steps", fmt::format("ProfilerStep#{}", at.step), begin, step_begin_us_});
  }
  is_full_ |= is_running_ && num_traced_operators >= most_operators_;
  if (is_running_ && (at.step >= last_ || is_full_)) {
    finish_kernels();
    stop();
  }
  start_before(at.step + 1);
}

void StepTrace::on_train_end(const RunMoment&, RunEnd, const std::string&) {
  if (is_running_) stop();
}

// A polled operation's end is noticed too late to show; its kernel is in the trace.
void StepTrace::add(const FlightEntry& entry) {
  if (entry.is_polled) return;
  const std::lock_guard lock(mutex_);
  spans_.push_back({"group " + entry.group, entry.name(), us_of(entry.start), us_of(entry.end)});
}

// The host runs ahead of a GPU: else a trace begins with kernels of the step before and lacks the last ones of its own.
void StepTrace::finish_kernels() const {
  if (world_.device().is_cuda()) gpu_support()->synchronize();
}

void StepTrace::stop() {
  is_running_ = false;
  world_.recorder().observe({});
  at::removeCallback(counter_);
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  const std::filesystem::path raw = file_.string() + ".tmp.json";
  result->save(raw.string());
  const std::string trace = read_file(raw);
  std::filesystem::remove(raw);
  write_gzip_file(file_, with_spans(trace));
  log_info("trace of steps {} to {}: {}", first_traced_, last_traced_, file_.string());
  if (last_traced_ < last_ && is_full_) {
    log_warn("the trace has reached about {} MB and ends after step {}; trace steps {} to {} in a run of their own",
             most_bytes_ / 1'000'000, last_traced_, last_traced_ + 1, last_);
  }
}

std::string StepTrace::with_spans(const std::string& trace) {
  const std::lock_guard lock(mutex_);
  const std::string list = "\"traceEvents\": [";
  const std::size_t at = trace.find(list);
  const std::size_t open = trace.find('{');
  if (at == std::string::npos || open == std::string::npos || open > at) return trace;
  const double base = base_us(trace);
  std::string added;
  std::vector<std::string> lanes;
  for (const Span& span : spans_) {
    auto lane = std::find(lanes.begin(), lanes.end(), span.lane);
    if (lane == lanes.end()) {
      lanes.push_back(span.lane);
      lane = lanes.end() - 1;
      added += fmt::format(
          R"({{"ph": "M", "name": "thread_name", "pid": "tessera", "tid": {}, "ts": 0, "args": {{"name": {}}}}},)",
          kFirstLane + std::ssize(lanes) - 1, quoted(span.lane));
    }
    added += fmt::format(
        R"({{"ph": "X", "cat": "user_annotation", "name": {}, "pid": "tessera", "tid": {}, "ts": {:.3f}, "dur": {:.3f}}},)",
        quoted(span.name), kFirstLane + (lane - lanes.begin()), span.begin_us - base, span.end_us - span.begin_us);
    added += "\n";
  }
  // By this, analysers tell the ranks' files apart.
  const std::string head = fmt::format(R"({{"distributedInfo": {{"backend": {}, "rank": {}, "world_size": {}}},)",
                                       quoted(world_.backend_name()), world_.rank(), world_.size());
  return head + trace.substr(open + 1, at + list.size() - open - 1) + "\n" + added + trace.substr(at + list.size());
}

}  // namespace tessera
