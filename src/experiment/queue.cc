#include "experiment/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/command_output.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};
constexpr double kSecondsBetweenQuestions = 30;

// "0:15": the exit status and the signal.
std::optional<int> status_of(const std::string& code) {
  const std::vector<std::string> parts = split(code, ':');
  if (parts.empty()) return std::nullopt;
  const auto status = parse_integer(parts[0]);
  const auto signal = parts.size() > 1 ? parse_integer(parts[1]) : std::nullopt;
  if (!status) return std::nullopt;
  return static_cast<int>(signal && *signal > 0 ? 128 + *signal : *status);
}

bool holds_all(const Jobs& jobs, const std::vector<std::string>& ids) {
  return std::all_of(ids.begin(), ids.end(), [&](const std::string& id) { return jobs.contains(id); });
}

std::optional<Jobs> cached(const fs::path& cache) {
  std::error_code none;
  if (cache.empty() || !fs::exists(cache, none)) return std::nullopt;
  try {
    const Json json = read_json_file(cache);
    const double age = wall_seconds() - json.at("time").get<double>();
    if (age < 0 || age > kSecondsBetweenQuestions) return std::nullopt;
    Jobs jobs;
    for (const auto& [id, each] : json.at("jobs").items()) {
      if (auto job = job_of(each)) jobs[id] = std::move(*job);
    }
    return jobs;
  } catch (const std::exception& error) {
    log_debug("{} is skipped: {}", cache.string(), error.what());
    return std::nullopt;
  }
}

Jobs ask_slurm(const std::vector<std::string>& ids) {
  Jobs jobs = parse_squeue(successful_output({"squeue", "-h", "-o", "%i|%T|%r|%N"}, kPatience));
  if (holds_all(jobs, ids)) return jobs;
  // What was asked first knows more of live jobs.
  if (const CommandOutput recent = command_output({"scontrol", "-o", "show", "job"}, kPatience); recent.status == 0) {
    jobs.merge(parse_scontrol(recent.out));
  }
  if (holds_all(jobs, ids)) return jobs;
  const CommandOutput accounted = command_output(
      {"sacct", "-n", "-X", "-P", "-o", "JobID,State,ExitCode,NodeList", "-j", join(ids, ",")}, kPatience);
  if (accounted.status == 0) jobs.merge(parse_sacct(accounted.out));  // else there is no accounting
  return jobs;
}

std::string submit_job(const fs::path& script, const std::vector<std::string>& after) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  // 'afterany': a failed run must not keep the others waiting for ever.
  if (!after.empty()) words.push_back("--dependency=afterany:" + join(after, ":"));
  words.push_back(script.string());
  const std::string answer(trim(successful_output(words, kPatience)));
  return answer.substr(0, answer.find(';'));  // "12;cluster"
}

Submitted submit_one(const ResolvedExperiment& experiment, const SubmitOptions& options,
                     const std::vector<std::string>& after) {
  const fs::path folder = fs::absolute(make_run_folder(options.runs, experiment, options.program));
  const fs::path script = folder / "job.sh";
  write_file_atomically(script, job_script(experiment, options.site, options.program, folder, options.syncs_wandb));
  Submitted made{experiment.name, "", folder};
  try {
    made.job_id = submit_job(script, after);
  } catch (const Error& error) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw error.in_context(experiment.name);
  }
  write_file_atomically(folder / "submitted.json",
                        Json{{"job_id", made.job_id}, {"time", wall_seconds()}}.dump() + "\n");
  return made;
}

}  // namespace

Json job_json(const QueuedJob& job) {
  Json json = {{"state", job.state}, {"reason", job.reason}};
  if (job.exit_status) json["exit_status"] = *job.exit_status;
  return json;
}

std::optional<QueuedJob> job_of(const Json& json) {
  if (!json.is_object() || !json.value("state", Json()).is_string()) return std::nullopt;
  QueuedJob job{json.at("state"), "", std::nullopt};
  if (json.value("reason", Json()).is_string()) job.reason = json.at("reason");
  if (json.value("exit_status", Json()).is_number_integer()) job.exit_status = json.at("exit_status").get<int>();
  return job;
}

bool is_over(const std::string& state) {
  static const std::vector<std::string> live = {"PENDING",     "RUNNING",   "SUSPENDED",    "COMPLETING",
                                                "CONFIGURING", "REQUEUED",  "RESIZING",     "STOPPED",
                                                "SIGNALING",   "STAGE_OUT", "REQUEUE_HOLD", "SPECIAL_EXIT"};
  return std::find(live.begin(), live.end(), state) == live.end();
}

void cancel_jobs(const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  std::vector<std::string> words = {"scancel"};
  words.insert(words.end(), ids.begin(), ids.end());
  successful_output(words, kPatience);
}

Jobs ask_about(const std::vector<std::string>& ids, const fs::path& cache) {
  if (ids.empty()) return {};
  if (auto known = cached(cache); known && holds_all(*known, ids)) return std::move(*known);
  Jobs jobs = ask_slurm(ids);
  std::erase_if(jobs, [&](const auto& job) { return std::find(ids.begin(), ids.end(), job.first) == ids.end(); });
  if (!cache.empty()) {
    try {
      Json answer = {{"time", wall_seconds()}, {"jobs", Json::object()}};
      for (const auto& [id, job] : jobs) answer["jobs"][id] = job_json(job);
      write_file_atomically(cache, json_text(answer) + "\n");
    } catch (const Error& error) {  // another user's folder: nothing is lost but time
      log_debug("{}", error.what());
    }
  }
  return jobs;
}

Jobs parse_squeue(const std::string& text) {
  Jobs jobs;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (parts.size() < 4) continue;
    jobs[parts[0]] = {parts[1], parts[1] == "RUNNING" ? parts[3] : parts[2], std::nullopt};
  }
  return jobs;
}

Jobs parse_scontrol(const std::string& text) {
  Jobs jobs;
  for (const std::string& line : split(text, '\n')) {
    std::map<std::string, std::string> fields;
    for (const std::string& word : split(line, ' ')) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) fields.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
    if (!fields.contains("JobId") || !fields.contains("JobState")) continue;
    const bool has_nodes = fields.contains("NodeList") && fields["NodeList"] != "(null)";
    jobs[fields["JobId"]] = {fields["JobState"], has_nodes ? fields["NodeList"] : fields["Reason"],
                             status_of(fields["ExitCode"])};
  }
  return jobs;
}

Jobs parse_sacct(const std::string& text) {
  Jobs jobs;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (parts.size() < 4) continue;
    const std::string state = parts[1].substr(0, parts[1].find_first_of(" +"));  // "CANCELLED by 1000", "CANCELLED+"
    jobs[parts[0]] = {state, parts[3], status_of(parts[2])};
  }
  return jobs;
}

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
  std::set<std::string> baselines;
  for (const ResolvedExperiment& experiment : experiments) baselines.insert(experiment.study.baseline);
  std::stable_partition(experiments.begin(), experiments.end(),
                        [&](const ResolvedExperiment& each) { return baselines.contains(each.name); });
  std::vector<Submitted> submitted;
  const auto parallel = static_cast<std::size_t>(options.max_parallel);
  for (const ResolvedExperiment& experiment : experiments) {
    std::vector<std::string> after;
    if (parallel > 0 && submitted.size() >= parallel) after.push_back(submitted[submitted.size() - parallel].job_id);
    for (const Submitted& before : submitted) {
      if (options.baseline_first && before.experiment == experiment.study.baseline) after.push_back(before.job_id);
    }
    submitted.push_back(submit_one(experiment, options, after));
    tell(submitted.back());
  }
  return submitted;
}

}  // namespace tessera
