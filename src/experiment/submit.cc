#include "experiment/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "experiment/queue.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_baseline(const ResolvedExperiment& experiment, const std::vector<ResolvedExperiment>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&](const ResolvedExperiment& other) { return other.study.baseline == experiment.name; });
}

class Submission {
 public:
  explicit Submission(const SubmitOptions& options) : options_(options) {}

  Submitted add(const ResolvedExperiment& experiment) {
    const fs::path folder = fs::absolute(make_run_folder(options_.runs, experiment, options_.program));
    const fs::path script = folder / "job.sh";
    write_file_atomically(script, job_script(experiment, options_.site, options_.program, folder, options_.script));
    Submitted made{experiment.name, "", folder};
    try {
      made.job_id = submit_job(script, dependency(experiment));
    } catch (const Error& error) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      throw error.in_context(experiment.name);
    }
    write_file_atomically(folder / "submitted.json",
                          Json{{"job_id", made.job_id}, {"time", wall_seconds()}}.dump() + "\n");
    ids_.push_back(made.job_id);
    id_of_[experiment.name] = made.job_id;
    return made;
  }

 private:
  // 'afterany': a failed run must not keep the others waiting for ever.
  std::string dependency(const ResolvedExperiment& experiment) const {
    std::vector<std::string> before;
    const auto parallel = static_cast<std::size_t>(options_.max_parallel);
    if (parallel > 0 && ids_.size() >= parallel) before.push_back(ids_[ids_.size() - parallel]);
    const auto baseline = id_of_.find(experiment.study.baseline);
    if (options_.baseline_first && baseline != id_of_.end()) before.push_back(baseline->second);
    std::string text;
    for (const std::string& id : before) text += (text.empty() ? "afterany:" : ":") + id;
    return text;
  }

  const SubmitOptions& options_;
  std::vector<std::string> ids_;
  std::map<std::string, std::string> id_of_;
};

}  // namespace

void check_fits(const ResolvedExperiment& experiment, const Site& site) {
  if (!experiment.on_gpus() || site.gpus_per_node == 0) return;
  const int wanted = experiment.reserved_gpus_per_node();
  if (wanted <= site.gpus_per_node) return;
  throw UsageError(fmt::format("{} needs {} GPUs per node{}; {} says that a node has {}", experiment.name, wanted,
                               wanted > experiment.gpus_per_node() ? " (--reserved_gpus_per_node)" : "", site.file,
                               site.gpus_per_node));
}

std::vector<Submitted> submit(std::vector<ResolvedExperiment> experiments, const SubmitOptions& options,
                              const std::function<void(const Submitted&)>& tell) {
  for (const ResolvedExperiment& experiment : experiments) {
    check_fits(experiment, options.site);
    experiment.check_can_start();
  }
  const std::vector<ResolvedExperiment> all = experiments;
  std::stable_partition(experiments.begin(), experiments.end(),
                        [&](const ResolvedExperiment& each) { return is_baseline(each, all); });
  Submission submission(options);
  std::vector<Submitted> submitted;
  for (const ResolvedExperiment& experiment : experiments) {
    submitted.push_back(submission.add(experiment));
    tell(submitted.back());
  }
  return submitted;
}

}  // namespace tessera
