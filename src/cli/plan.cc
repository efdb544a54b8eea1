// `tessera plan MODEL`: the memory of a training step on each rank, by strategy.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "parallel/placement.h"
#include "parallel/sharded_optimizer.h"
#include "plan/plan_report.h"
#include "plan/planned_model.h"
#include "settings/foreign_config.h"
#include "settings/load.h"
#include "settings/shared.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResNet = "resnet50";

struct PlanSettings {
  std::vector<std::string> words, notes;
  std::string config_name, strategies, optim, device;
  int num_ranks = 1, ranks_per_node = 0;
  ForeignFiles files;
  SpreadOptions spread;
  bool bf16 = false, fp16 = false, checkpoints = false;
  double momentum = 0;
  std::int64_t num_micro_steps = 1, num_tokens = 0, batch_size = 0, total_batch_size = 0, length = 0, image_size = 0,
               num_classes = 0;
  std::int64_t memory_bytes = 0;
  bool as_json = false;
};

void declare_run(Schema& schema, PlanSettings& s) {
  schema.group("How the run is distributed");
  schema.text("strategy", &s.strategies, "one strategy, several (zero2,full_shard) or all", {.preset = "all"});
  schema.integer("ranks", &s.num_ranks, "total number of ranks",
                 {.preset = "1", .at_least = 1, .at_most = 1'000'000, .aliases = {"num_ranks"}});
  schema.integer("ranks_per_node", &s.ranks_per_node,
                 "ranks per node, for strategies that split within a node; 0: all ranks are on one node",
                 {.preset = "0", .at_least = 0, .at_most = 1'000'000});
  declare(schema, s.spread, {"offload_optimizer", "offload_param", "delayed_update", "units_on_device"});
  declare(schema, s.files);
  schema.text("device", &s.device, "what ranks compute on", {.preset = "cuda", .choices = {"cuda", "cpu"}});
  schema.bytes("memory", &s.memory_bytes,
               "memory of one device (80G), to show which strategies fit, and what would make one fit");
}

void declare_training(Schema& schema, PlanSettings& s) {
  schema.group("What is trained");
  schema.text("config_name", &s.config_name, "a config.json of a text model, instead of MODEL");
  shared::half_types(schema, &s.fp16, &s.bf16);
  shared::optim(schema, &s.optim, {.aliases = {"optimizer"}});
  shared::momentum(schema, &s.momentum, "0");
  shared::accumulation(schema, &s.num_micro_steps, {.preset = "1"});
  shared::gradient_checkpointing(schema, &s.checkpoints);
  shared::train_batch_size(schema, &s.batch_size, {.preset = "4"});
  shared::total_batch_size(schema, &s.total_batch_size);
  schema.integer("max_seq_length", &s.length, "tokens per sequence",
                 {.preset = "512", .at_least = 1, .at_most = 1 << 24, .aliases = {"length", "max_length"}});
  schema.integer("tokens", &s.num_tokens, "tokens per rank and micro-batch, instead of batch size x length",
                 {.at_least = 1, .at_most = std::int64_t{1} << 40});
  schema.integer("image_size", &s.image_size, "resnet50: side of an image",
                 {.preset = "224", .at_least = 32, .at_most = 1 << 14});
  schema.integer("num_classes", &s.num_classes, "resnet50: classes",
                 {.preset = "1000", .at_least = 1, .at_most = 1 << 24});
}

SpreadOptions spread_of(const PlanSettings& s, const std::string& strategy) {
  SpreadOptions spread = s.spread;
  spread.strategy = strategy;
  return spread;
}

std::vector<std::string> strategies_of(const PlanSettings& s, std::vector<std::string>& left_out) {
  std::vector<std::string> chosen;
  for (const std::string& word : split(s.strategies, ',')) {
    const std::string name(trim(word));
    if (name != "all") {
      placement_of(spread_of(s, name));  // refuses unknown names
      if (std::ranges::find(chosen, name) == chosen.end()) chosen.push_back(name);
      continue;
    }
    for (const std::string& each : strategy_names()) {
      const Placement& row = placement_of(each);
      if (!s.files.fsdp_config.empty() && row.family != StrategyFamily::kFsdp) continue;
      const bool is_possible =
          (!row.is_for_one_rank || s.num_ranks == 1) && (!s.spread.offload_parameters || row.parameters.is_split());
      (is_possible ? chosen : left_out).push_back(each);
    }
  }
  return chosen;
}

PlanRequest request_of(const Schema& schema, const PlanSettings& s, bool is_text) {
  PlanRequest request;
  MemoryPlanOptions& options = request.options;
  const at::ScalarType type = s.bf16 ? at::kBFloat16 : s.fp16 ? at::kHalf : at::kFloat;
  // Images are trained with AMP: units stay float32.
  const at::ScalarType of_units = is_text ? type : at::kFloat;
  options.types = {of_units, of_units, s.num_micro_steps > 1};
  options.num_moments = num_moments_of(choose_optimizer(s.optim, {.momentum = s.momentum}));
  options.num_ranks = s.num_ranks;
  options.ranks_per_node = s.ranks_per_node;
  options.num_micro_steps = static_cast<int>(s.num_micro_steps);
  options.checkpoints_activations = s.checkpoints;
  options.on_gpu = s.device == "cuda";
  StepShape& shape = request.shape;
  shape.on_gpu = options.on_gpu;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(type));
  shape.num_sequences = shape.num_tokens = s.batch_size;
  shape.longest = is_text ? s.length : s.image_size;
  shape.casts_parameters = !is_text;
  if (!is_text) return request;
  shape.num_tokens = s.batch_size * s.length;
  if (schema.at("tokens").is_set()) {
    shape.num_tokens = s.num_tokens;
    shape.longest = std::min(s.length, s.num_tokens);
    shape.num_sequences = (s.num_tokens + shape.longest - 1) / shape.longest;
  }
  shape.num_counted = shape.num_tokens;
  return request;
}

void check(const Schema& schema, const PlanSettings& s) {
  const auto is_set = [&](const char* name) { return schema.at(name).is_set(); };
  if (s.words.size() + is_set("config_name") != 1) {
    throw UsageError(
        "tessera plan takes one MODEL: a folder with config.json, a hub name in the local cache or resnet50; or "
        "--config_name FILE instead");
  }
  if (s.bf16 && s.fp16) throw UsageError("--bf16 and --fp16: choose one");
  if (is_set("tokens") && is_set("per_device_train_batch_size")) {
    throw UsageError("--tokens and --per_device_train_batch_size both say how large a micro-batch is: give one");
  }
  const OptimizerKind& optimizer = optimizer_of(s.optim);
  const bool reads_momentum = std::ranges::find(optimizer.reads, "momentum") != optimizer.reads.end();
  if (s.momentum > 0 && !reads_momentum) {
    throw UsageError(fmt::format("--momentum: --optim {} has none", s.optim));
  }
  if (s.device == "cpu" && (s.spread.offload_optimizer || s.spread.offload_parameters)) {
    throw UsageError("offload with --device cpu has no effect: a CPU's memory is the host's already; leave it out");
  }
  const bool is_resnet = s.words == std::vector<std::string>{kResNet};
  for (const char* name : {"image_size", "num_classes"}) {
    if (is_set(name) && !is_resnet) throw UsageError(fmt::format("--{}: only for {}", name, kResNet));
  }
  for (const char* name : {"tokens", "max_seq_length"}) {
    if (is_set(name) && is_resnet) throw UsageError(fmt::format("--{}: {} has no tokens", name, kResNet));
  }
}

PlannedModel planned_model(const PlanSettings& s, const StepShape& shape, bool is_text) {
  if (!is_text) {
    ResNet50 model(s.num_classes);
    return planned_resnet50(model, s.image_size);
  }
  std::string origin = s.config_name;
  Json config;
  if (!origin.empty()) {
    config = read_json_file(origin);
  } else {
    const ModelFolder folder = ModelFolder::open(find_model_folder(s.words.front(), Environment::of_process()));
    config = folder.config();
    origin = (folder.path() / "config.json").string();
  }
  const auto model = make_language_model(config, origin, at::device(at::kMeta));
  if (model->max_positions() && shape.longest > *model->max_positions()) {
    throw UsageError(fmt::format("--max_seq_length {}: {} has positions for only {}", shape.longest, origin,
                                 *model->max_positions()));
  }
  return planned_language_model(*model, config, origin);
}

void declare_plan(Schema& schema, PlanSettings& s) {
  schema.positionals("MODEL", &s.words);
  declare_training(schema, s);
  declare_run(schema, s);
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print one JSON object, in bytes");
}

void read_files(Schema& schema, PlanSettings& s) {
  read_foreign_files(s.files, schema, s.notes);
  resolve_batch(schema, s.total_batch_size, s.batch_size, s.num_micro_steps, s.num_ranks, s.notes);
}

int run_plan(Schema& schema, PlanSettings& s) {
  check(schema, s);
  for (const std::string& note : s.notes) log_info("{}", note);
  const bool is_text = s.words != std::vector<std::string>{kResNet};
  PlanReport report;
  report.request = request_of(schema, s, is_text);
  report.request.options.spread.units_on_device = s.spread.units_on_device;
  const std::vector<std::string> strategies = strategies_of(s, report.left_out);
  report.model = planned_model(s, report.request.shape, is_text);
  report.request.options.buffer_bytes = report.model.buffer_bytes;
  report.optimizer = optimizer_of(s.optim).name;
  if (schema.at("memory").is_set()) report.limit_bytes = s.memory_bytes;
  for (const std::string& name : strategies) {
    PlanRequest request = report.request;
    request.options.spread = spread_of(s, name);
    report.rows.push_back({name, request, plan_memory(report.model, request)});
  }
  add_advice(report);
  print_out(s.as_json ? json_text(plan_json(report), 2) + "\n" : plan_text(report));
  return 0;
}

}  // namespace

Command plan_command() {
  return with_settings<PlanSettings>(
      {.name = "plan", .summary = "the memory of a training step on each rank, by strategy"}, declare_plan, run_plan,
      read_files);
}

}  // namespace tessera
