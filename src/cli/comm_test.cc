// `tessera comm-test`: how fast the ranks communicate, with nccl-tests' arguments and columns.
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "cli/commands.h"
#include "comm/bandwidth/bandwidth.h"
#include "comm/failure.h"
#include "comm/world_settings.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "monitor/host_info.h"
#include "tessera/world.h"

namespace tessera {
namespace {

struct CommTestSettings {
  std::vector<std::string> words;
  std::string operation, datatype, reduction;
  std::int64_t min_bytes = 0, max_bytes = 0, step_bytes = 0, step_factor = 0;
  int num_gpus = 1, num_threads = 1, average = 1;
  double min_bus_bandwidth = 0;
  int parallel_init = 0, aggregated = 1, graphs = 0, cpu_time = 0, null_stream = 0, registers = 0, timeout_s = 0;
  std::vector<std::string> idle;  // of these, the ones that were given
  BandwidthOptions options;
  WorldOptions world;
};

void declare_measurement(Schema& schema, CommTestSettings& s) {
  schema.group("Sizes");
  schema.bytes("minbytes", &s.min_bytes, "smallest size", {.preset = "32M", .at_least = 1, .short_name = 'b'});
  schema.bytes("maxbytes", &s.max_bytes, "largest size", {.preset = "32M", .at_least = 1, .short_name = 'e'});
  schema.bytes("stepbytes", &s.step_bytes, "bytes from one size to the next, unless -f is given",
               {.preset = "1M", .at_least = 1, .short_name = 'i'});
  schema.integer("stepfactor", &s.step_factor, "factor from one size to the next; 0 or 1: steps of -i bytes",
                 {.preset = "0", .at_least = 0, .at_most = 1'000'000, .short_name = 'f'});

  schema.group("What is measured");
  schema.text("operation", &s.operation, "the operation; also accepted as the first word: tessera comm-test all_gather",
              {.preset = "all_reduce", .choices = test_operation_names()});
  schema.text("datatype", &s.datatype, "type of the elements",
              {.preset = "float", .choices = type_names(), .short_name = 'd'});
  schema.text("op", &s.reduction, "the reduction, if the operation reduces",
              {.preset = "sum", .choices = reduction_names(), .short_name = 'o'});
  schema.integer("root", &s.options.root, "root of broadcast and reduce",
                 {.preset = "0", .at_least = 0, .short_name = 'r'});
  schema.integer("ngpus", &s.num_gpus, "1: a rank has one GPU or none; for more GPUs, start more ranks",
                 {.preset = "1", .at_least = 1, .short_name = 'g'});
  schema.integer("nthreads", &s.num_threads, "1: ranks are processes",
                 {.preset = "1", .at_least = 1, .short_name = 't'});

  schema.group("How it is measured");
  schema.integer("iters", &s.options.num_iterations, "timed calls; 0: data is checked, nothing is timed",
                 {.preset = "20", .at_least = 0, .at_most = 1'000'000'000, .short_name = 'n'});
  schema.integer("warmup_iters", &s.options.num_warmups,
                 "calls before the first row, with the largest and with the smallest size",
                 {.preset = "5", .at_least = 0, .at_most = 1'000'000'000, .short_name = 'w'});
  schema.integer("check", &s.options.num_checks, "calls per row whose data is checked; 0: none",
                 {.preset = "1", .at_least = 0, .at_most = 1'000'000, .short_name = 'c'});
  schema.boolean("blocking", &s.options.blocking, "wait for the GPU after each call (CPU ranks always wait)",
                 {.short_name = 'z'});
  schema.integer("average", &s.average,
                 "whose time counts: 0 rank 0's, 1 the mean, 2 the fastest, 3 the slowest rank's",
                 {.preset = "1", .at_least = 0, .at_most = 3, .short_name = 'a'});
  schema.real("min-busbw", &s.min_bus_bandwidth,
              "GB/s that the average bus bandwidth must reach; below it the exit status is 46, without a figure 44",
              {.at_least = 0});
}

// Flags of nccl-tests that scripts pass by habit: accepted if they ask for what happens anyway.
void declare_idle(Schema& schema, CommTestSettings& s) {
  schema.group("As in nccl-tests");
  const auto flag = [&](const char* name, char letter, int* value, const char* preset, const char* help) {
    schema.integer(name, value, help, {.preset = preset, .at_least = 0, .short_name = letter});
  };
  flag("parallel_init", 'p', &s.parallel_init, "0", "0 or 1: ranks are processes and always start in parallel");
  flag("agg_iters", 'm', &s.aggregated, "1", "1: calls are not aggregated");
  flag("cudagraph", 'G', &s.graphs, "0", "0: calls are not captured in CUDA graphs");
  flag("report_cputime", 'C', &s.cpu_time, "0", "0: the time is that of the whole call");
  flag("stream_null", 'y', &s.null_stream, "0", "0: the default stream is not used");
  flag("local_register", 'R', &s.registers, "0", "0 or 1: whether buffers are registered is the backend's choice");
  flag("timeout", 'T', &s.timeout_s, "0", "seconds; no effect: --comm_timeout ends a collective that hangs");
}

void complete_idle(const Schema& schema, CommTestSettings& s) {
  struct IdleFlag {
    const char* name;
    char letter;
    int value, low, high;
    const char* reason;
  };
  constexpr int kAny = std::numeric_limits<int>::max();
  const IdleFlag flags[] = {
      {"parallel_init", 'p', s.parallel_init, 0, 1, "ranks always start in parallel; give 0 or 1"},
      {"agg_iters", 'm', s.aggregated, 1, 1, "Tessera does not aggregate calls; give 1"},
      {"cudagraph", 'G', s.graphs, 0, 0, "Tessera does not capture calls in CUDA graphs; give 0"},
      {"report_cputime", 'C', s.cpu_time, 0, 0, "Tessera reports the time of the whole call; give 0"},
      {"stream_null", 'y', s.null_stream, 0, 0, "Tessera does not use the default stream; give 0"},
      {"local_register", 'R', s.registers, 0, 1, "Tessera has no symmetric buffers; give 0 or 1"},
      {"timeout", 'T', s.timeout_s, 0, kAny, ""},
  };
  for (const IdleFlag& flag : flags) {
    if (flag.value < flag.low || flag.value > flag.high) {
      throw UsageError(fmt::format("-{} {}: {}", flag.letter, flag.value, flag.reason));
    }
    if (schema.at(flag.name).is_set()) s.idle.push_back(fmt::format("-{}", flag.letter));
  }
}

void complete(Schema& schema, CommTestSettings& s) {
  complete_idle(schema, s);
  s.options.operation = test_operation_named(s.operation);
  if (s.words.size() > 1) throw UsageError(fmt::format("unexpected word '{}' after '{}'", s.words[1], s.words[0]));
  if (!s.words.empty()) {
    const TestOperation first = test_operation_named(s.words.front());
    if (schema.at("operation").is_set() && first != s.options.operation) {
      throw UsageError(
          fmt::format("'{}' and --operation {} name two operations; give one", s.words.front(), s.operation));
    }
    s.options.operation = first;
  }
  if (s.num_gpus != 1) {
    throw UsageError(fmt::format("-g {}: a rank of Tessera has one GPU; use -g 1 and start {} times as many ranks",
                                 s.num_gpus, s.num_gpus));
  }
  if (s.num_threads != 1) {
    throw UsageError(fmt::format("-t {}: a rank of Tessera is a process; use -t 1 and start {} times as many ranks",
                                 s.num_threads, s.num_threads));
  }
  if (schema.at("stepbytes").is_set() && s.step_factor > 1) {
    throw UsageError("-i and -f are both given: sizes grow by a step or by a factor; give one");
  }
  s.options.type = type_named(s.datatype);
  s.options.reduce_op = reduction_named(s.reduction);
  s.options.time_of = static_cast<TimeOf>(s.average);
  const bool averages_integers = traits_of(s.options.operation).reduces && s.options.reduce_op == ReduceOp::AVG &&
                                 c10::isIntegralType(s.options.type, /*includeBool=*/false);
  if (averages_integers) throw UsageError(fmt::format("-o avg -d {}: integers have no exact average", s.datatype));
}

// Prints rank 0's lines at once: a job's log is read while it runs.
void say(const World& world, const std::string& text) {
  if (world.rank() == 0) print_out(text);
}

ReportHeader header_of(World& world, const CommTestSettings& s) {
  ReportHeader header;
  header.num_ranks = world.size();
  header.min_bytes = s.min_bytes;
  header.max_bytes = s.max_bytes;
  header.step = s.step_factor > 1 ? fmt::format("{}(factor)", s.step_factor) : fmt::format("{}(bytes)", s.step_bytes);
  header.backend = world.backend_name();
  header.device = world.device().is_cuda() ? "GPUs" : "CPUs";
  header.hosts = world.hosts();
  header.idle = s.idle;
  return header;
}

// Every rank ends with the same status and reports it to the launcher.
int end_with(const World& world, ExitStatus status, const std::string& message) {
  if (status == ExitStatus::kOk) return 0;
  record_failure({.rank = world.rank(),
                  .host = world.hosts()[static_cast<std::size_t>(world.rank())],
                  .message = message,
                  .exit_status = static_cast<int>(status),
                  .is_consequence = world.rank() != 0});  // the launcher's last lines need only one name
  return static_cast<int>(status);
}

int refuse(const World& world, ExitStatus status, const std::string& message) {
  if (world.rank() == 0) log_error("{}", message);
  return end_with(world, status, message);
}

int measure(World& world, const CommTestSettings& s, const std::vector<std::int64_t>& all_sizes,
            std::optional<double> min_bus_bandwidth) {
  if (traits_of(s.options.operation).has_root && s.options.root >= world.size()) {
    return refuse(world, ExitStatus::kUsage,
                  fmt::format("-r {}: there is no such rank; the ranks are 0 to {}", s.options.root, world.size() - 1));
  }
  const std::vector<std::int64_t> sizes = without_repeats(
      all_sizes, s.options.operation, static_cast<std::int64_t>(c10::elementSize(s.options.type)), world.size());
  const std::int64_t available = read_memory_info().usable_bytes().value_or(std::numeric_limits<std::int64_t>::max());
  const std::string refusal = memory_refusal(world, s.options, sizes.back(), available);
  if (!refusal.empty()) return refuse(world, ExitStatus::kNoBandwidth, "No bandwidth figure: " + refusal);

  BandwidthTest test(world, s.options, sizes.back());
  say(world, report_header(header_of(world, s), s.options));
  test.warm_up(sizes.back());
  if (sizes.front() != sizes.back()) test.warm_up(sizes.front());
  for (const std::int64_t size : sizes) say(world, report_row(test.measure(size), s.options));
  const BandwidthTotals totals = test.totals();
  say(world, report_footer(totals, s.options.num_checks > 0));

  const BandwidthVerdict verdict = judge(totals, min_bus_bandwidth);
  const bool has_figure = totals.average_bus_bandwidth && totals.num_ranks > 1;
  if (min_bus_bandwidth && has_figure) {
    say(world, fmt::format("Measured {} BW: {:g} GB/s\n", traits_of(s.options.operation).title,
                           *totals.average_bus_bandwidth));
  }
  if (!verdict.message.empty()) say(world, verdict.message + "\n");
  return end_with(world, verdict.status, verdict.message);
}

void declare_comm_test(Schema& schema, CommTestSettings& settings) {
  declare_measurement(schema, settings);
  declare_idle(schema, settings);
  declare(schema, settings.world);
  schema.positionals("[OPERATION]", &settings.words);
}

int run_comm_test(Schema& schema, CommTestSettings& settings) {
  complete(schema, settings);
  const std::vector<std::int64_t> sizes =
      sizes_to_scan(settings.min_bytes, settings.max_bytes, settings.step_bytes, settings.step_factor);
  const std::optional<double> min_bus_bandwidth =
      schema.at("min-busbw").is_set() ? std::optional(settings.min_bus_bandwidth) : std::nullopt;
  WorldOptions world_options = options_of(settings.world, schema);
  world_options.settings["operation"] = traits_of(settings.options.operation).name;
  return run_rank(world_options, [&](World& world) {
    try {
      return measure(world, settings, sizes, min_bus_bandwidth);
    } catch (const c10::OutOfMemoryError& error) {  // of a GPU
      throw Error(fmt::format("No bandwidth figure: {}", error.what_without_backtrace()), ExitStatus::kNoBandwidth);
    } catch (const OutputError& error) {  // a figure that nobody can read does not count
      if (!min_bus_bandwidth) throw;
      throw Error(fmt::format("No bandwidth figure: {}", error.what()), ExitStatus::kNoBandwidth);
    } catch (const std::bad_alloc&) {
      throw Error("No bandwidth figure: out of memory", ExitStatus::kNoBandwidth);
    }
  });
}

}  // namespace

Command comm_test_command() {
  return with_settings<CommTestSettings>(
      {.name = "comm-test",
       .summary = "measure and check the collectives, as nccl-tests does",
       .about = "measure how fast the ranks communicate, with nccl-tests' arguments and columns"},
      declare_comm_test, run_comm_test);
}

}  // namespace tessera
