#include "listeners/run_reports.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>

#include "comm/exchange.h"
#include "comm/gpu_support.h"
#include "comm/mpi_support.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/log_record.h"
#include "core/version.h"
#include "listeners/console.h"
#include "listeners/csv_history.h"
#include "listeners/end_summary.h"
#include "listeners/rank_log.h"
#include "listeners/rank_records.h"
#include "listeners/step_trace.h"
#include "listeners/tensorboard.h"
#include "listeners/wandb.h"
#include "monitor/host_info.h"
#include "monitor/memory_logs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// "NVIDIA H200 (cuda:0)"
std::string device_name(const World& world) {
  const GpuSupport* gpus = world.device().is_cuda() ? gpu_support() : nullptr;
  const std::string name =
      gpus != nullptr ? gpus->info(world.device().index()).name : read_cpu_info().model.value_or("unknown");
  return fmt::format("{} ({})", name, world.device().str());
}

LogRecord versions_of(const World& world) {
  LogRecord versions = {{"tessera", std::string(kVersion)}, {"torch", std::string(TORCH_VERSION)}};
  const GpuSupport* gpus = world.device().is_cuda() ? gpu_support() : nullptr;
  if (gpus != nullptr) {
    versions.set("cuda", gpus->cuda_version());
    versions.set("cuda_driver", gpus->driver_version());
  }
  if (world.backend_name() == "nccl") versions.set("nccl", gpus->nccl_version());
  if (world.backend_name() == "mpi") versions.set("mpi", mpi_library_version());
  return versions;
}

// A row is written as soon as it is measured, so the last one's age is the file's. 0: there is none.
double start_of_cpu_log(const MemoryLogs& logs) {
  if (logs.cpu.empty()) return 0;
  try {
    const CpuMemoryLog log = read_cpu_memory_log(logs.cpu.front());
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(logs.cpu.front());
    if (log.samples.empty()) return 0;
    return wall_seconds() - std::chrono::duration<double>(age).count() - log.samples.back().elapsed_seconds;
  } catch (const std::exception&) {
    return 0;
  }
}

bool names_a_secret(const std::string& word, const Schema& schema) {
  if (!word.starts_with("--")) return false;
  std::string name = word.substr(2, word.find('=') - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  const std::vector<const Setting*> all = schema.shown();
  return std::any_of(all.begin(), all.end(),
                     [&](const Setting* each) { return each->is_secret() && each->name() == name; });
}

// The command line without secrets.
std::vector<std::string> without_secrets(const std::vector<std::string>& words, const Schema& schema) {
  std::vector<std::string> shown;
  bool is_value = false;  // of a secret
  for (const std::string& word : words) {
    const bool is_secret = names_a_secret(word, schema);
    const std::size_t equals = is_secret ? word.find('=') : std::string::npos;
    shown.push_back(is_value ? "(set)" : equals == std::string::npos ? word : word.substr(0, equals) + "=(set)");
    is_value = is_secret && equals == std::string::npos;
  }
  return shown;
}

// Sizes and durations stay as users write them: 4G, 30s.
LogValue typed_value(const Setting& setting) {
  if (setting.is_secret() || setting.text().empty()) return {};
  const Setting::Value value = setting.parse(setting.text());
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  if (const double* real = std::get_if<double>(&value)) return *real;
  const std::int64_t* whole = std::get_if<std::int64_t>(&value);
  if (whole != nullptr && setting.text() == std::to_string(*whole)) return *whole;
  return setting.text();
}

std::string text_of_value(const LogValue& value) {
  const Json json = json_of(value);
  return json.is_string() ? json.get<std::string>() : json.dump();
}

// Typed, and with what was decided where a setting said 'auto'. `decided`: values by the names of settings; names that
// the schema does not have are left out.
std::vector<RecordedSetting> recorded_settings(const Schema& schema, const LogRecord& decided) {
  std::vector<RecordedSetting> all;
  for (const Setting* setting : schema.shown()) {
    RecordedSetting recorded{setting->name(), setting->shown_text(), setting->origin(), typed_value(*setting)};
    const LogValue* made = decided.find(setting->name());
    if (made != nullptr && text_of_value(*made) != setting->text()) {
      recorded.origin = fmt::format("decided by the run, {} ({})", setting->shown_text(), setting->origin());
      recorded.value = text_of_value(*made);
      recorded.typed = *made;
    }
    all.push_back(std::move(recorded));
  }
  return all;
}

// {"learning_rate": 5e-05, "strategy": "zero2"}. Settings without a value are null.
Json settings_json(const std::vector<RecordedSetting>& settings) {
  Json config = Json::object();
  for (const RecordedSetting& setting : settings) config[setting.name] = json_of(setting.typed);
  return config;
}

// What is known of a run before it starts.
RunRecord record_of(const LoadedTrainSettings& run, const World& world, const std::vector<std::string>& devices,
                    const RunFacts& facts) {
  RunRecord record;
  record.facts = facts.facts;
  record.planned_memory = facts.planned_memory;
  record.settings = recorded_settings(*run.schema, facts.decided);
  record.versions = versions_of(world);
  record.commit = run.request.commit;
  record.hosts = world.hosts();
  record.devices = devices;
  record.command = without_secrets(run.request.arguments, *run.schema);
  record.command.insert(record.command.begin(), {"tessera", "train"});
  return record;
}

void add_reports(const LoadedTrainSettings& run, const World& world, const LogRecord& decided, Listeners& listeners) {
  const TrainSettings& settings = run.settings;
  const ReportSettings& reports = settings.reports;
  const fs::path output_dir = settings.output.output_dir;
  const std::string& host = world.hosts().front();
  const Json config = settings_json(recorded_settings(*run.schema, decided));
  if (reports.tensorboard) {
    const fs::path folder = settings.output.logging_dir.empty() ? default_logging_dir(output_dir, wall_seconds(), host)
                                                                : fs::path(settings.output.logging_dir);
    // A name or path need not be UTF-8.
    const std::string text = json_text(config, 2);
    listeners.add(std::make_unique<TensorBoardListener>(folder, host, text));
  }
  if (!reports.wandb) return;
  WandbOptions options;
  options.folder = reports.wandb_dir.empty() ? output_dir : fs::path(reports.wandb_dir);
  options.run_id = reports.wandb_run_id;
  if (!reports.wandb_project.empty()) options.project = reports.wandb_project;
  options.name = reports.wandb_name.empty() ? settings.output.output_dir : reports.wandb_name;
  listeners.add(std::make_unique<WandbListener>(options, config, host));
}

}  // namespace

RunReports::RunReports(const LoadedTrainSettings& run, World& world, const RunHistory& history, const RunFacts& facts,
                       Console& console, Listeners& listeners)
    : world_(world),
      utilisation_(std::make_shared<UtilisationMeter>(usage_reader(world), world.device().is_cuda())),
      devices_(gather_texts(world, device_name(world))),
      timer_start_(wall_seconds()),
      timer_([this, read = usage_reader(world)] { return read_and_touch(read); }),
      output_dir_(run.settings.output.output_dir),
      memory_job_(run.settings.monitor.job),
      shows_breakdown_(run.settings.reports.wall_clock_breakdown),
      console_(console),
      listeners_(listeners) {
  const bool is_first = world.rank() == 0;
  const std::string device =
      world.device().is_cuda() ? fmt::format("gpu.{}", static_cast<int>(world.device().index())) : "cpu";
  listeners.add(std::make_unique<UtilisationListener>(utilisation_, is_first ? &listeners : nullptr, device));
  listeners.add(std::make_unique<RankLog>());
  const ReportSettings& reports = run.settings.reports;
  if (reports.first_profiled > 0) {
    listeners.add(std::make_unique<StepTrace>(trace_path(output_dir_, world.rank()), reports.first_profiled,
                                              reports.last_profiled, world));
  }
  if (!is_first) return;
  auto recorder = std::make_unique<RunRecorder>(output_dir_ / "run.json", record_of(run, world, devices_, facts),
                                                secret_values_of(run.request.environment.all()), history.records);
  recorder_ = recorder.get();
  if (!memory_job_.empty()) recorder_->set_memory_logs(find_memory_logs(output_dir_, memory_job_));
  touched_ = recorder_;
  listeners.add(std::move(recorder));
  listeners.add(std::make_unique<CsvHistory>(output_dir_ / "metrics.csv", history.step_in_folder));
  add_reports(run, world, facts.decided, listeners);
  if (run.settings.output.shows_progress) listeners.add(std::make_unique<ProgressShower>(console));
  listeners.add(std::make_unique<LogLinePrinter>(console));
  auto summary = std::make_unique<EndSummary>(console, facts);
  summary_ = summary.get();
  listeners.add(std::move(summary));
}

Usage RunReports::read_and_touch(const UsageReader& read) {
  try {
    if (RunRecorder* recorder = touched_) recorder->touch(wall_seconds());
  } catch (const std::exception& error) {
    log_debug("run.json was not updated: {}", error.what());  // the next log tries again and reports it
  }
  return read();
}

void RunReports::watch(StepClock& clock) {
  clock_ = &clock;
  if (shows_breakdown_ && world_.rank() == 0) listeners_.add(std::make_unique<BreakdownPrinter>(console_, clock));
}

LogRecord RunReports::summary() {
  timer_.stop();
  std::vector<RankRecord> ranks =
      gather_rank_records(world_, clock_ == nullptr ? StepTimes() : clock_->times(), timer_.readings(), devices_);
  if (recorder_ != nullptr) {
    // The timers of all ranks start at about the same time.
    for (RankRecord& rank : ranks) rank.series.start_seconds = timer_start_ - recorder_->started();
    recorder_->set_ranks(ranks);
    recorder_->set_collectives(world_.recorder().totals());
    recorder_->set_traces(world_.size());
    if (!memory_job_.empty()) {
      const MemoryLogs logs = find_memory_logs(output_dir_, memory_job_);
      recorder_->set_memory_logs(logs, start_of_cpu_log(logs));
    }
  }
  if (summary_ != nullptr) summary_->set_ranks(ranks);
  return utilisation_->summary(world_);
}

void RunReports::write_page(const MakePage& make, RunEnd end) {
  if (recorder_ == nullptr || !make) return;
  try {
    const fs::path file = output_dir_ / "report.html";
    write_file_atomically(file, make(output_dir_, file));
    if (end != RunEnd::kFailed) console_.print_line(fmt::format("  {:<10}{}", "page", file.string()));
  } catch (const std::exception& error) {
    log_warn("no page of the run: {}", error.what());  // the run itself is recorded
  }
}

}  // namespace tessera
