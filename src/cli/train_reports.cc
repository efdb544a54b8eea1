#include "cli/train_reports.h"

#include <torch/version.h>

#include <filesystem>
#include <memory>

#include "core/version.h"
#include "train/console_listeners.h"
#include "train/csv_history.h"
#include "train/run_record.h"
#include "train/tensorboard.h"
#include "train/wandb.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

RunDescription description_of(const TrainRun& run, const World& world) {
  RunDescription description;
  for (const Setting* setting : run.loaded.schema->shown()) {
    description.settings.push_back({setting->name(), setting->shown_text(), setting->origin()});
  }
  description.versions = {{"tessera", std::string(kVersion)}, {"torch", std::string(TORCH_VERSION)}};
  description.hosts = world.hosts();
  description.devices.assign(static_cast<std::size_t>(world.size()), world.device().str());
  description.command = {"tessera", "train"};
  description.command.insert(description.command.end(), run.args.begin(), run.args.end());
  description.secret_values = secret_values_of(run.environment.all());
  return description;
}

void add_reports(const TrainRun& run, const World& world, Listeners& listeners) {
  const TrainSettings& settings = run.settings();
  const ReportSettings& reports = settings.reports;
  const fs::path output_dir = settings.output.output_dir;
  const std::string& host = world.hosts().front();
  if (reports.tensorboard) {
    const fs::path folder =
        settings.output.logging_dir.empty() ? output_dir / "runs" : fs::path(settings.output.logging_dir);
    listeners.add(std::make_unique<TensorBoardListener>(folder, host, run.loaded.schema->config_text()));
  }
  if (!reports.wandb) return;
  WandbOptions options;
  options.folder = reports.wandb_dir.empty() ? output_dir : fs::path(reports.wandb_dir);
  options.run_id = reports.wandb_run_id;
  if (!reports.wandb_project.empty()) options.project = reports.wandb_project;
  options.name = reports.wandb_name.empty() ? settings.output.output_dir : reports.wandb_name;
  listeners.add(std::make_unique<WandbListener>(options, run.loaded.schema->to_json(), host));
}

}  // namespace

void add_listeners(const TrainRun& run, const World& world, const std::vector<LogRecord>& history, Console& console,
                   Listeners& listeners) {
  if (world.rank() != 0) return;
  const fs::path output_dir = run.settings().output.output_dir;
  listeners.add(std::make_unique<RunRecorder>(output_dir / "run.json", description_of(run, world), history));
  listeners.add(std::make_unique<CsvHistory>(output_dir / "metrics.csv"));
  add_reports(run, world, listeners);
  if (run.settings().output.shows_progress) listeners.add(std::make_unique<ProgressShower>(console));
  listeners.add(std::make_unique<LogLinePrinter>(console));
}

}  // namespace tessera
