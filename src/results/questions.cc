#include "results/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "record/metrics.h"
#include "record/run_record.h"
#include "results/question_parts.h"
#include "results/tables/table.h"

namespace tessera::internal {
namespace {

std::string facts_key(const RunRecord& run, const std::vector<std::string>& facts) {
  std::string key;
  for (const std::string& fact : facts) key += fact_text(run, fact) + "\n";
  return key;
}

std::optional<CommonFigure> figure_of_all(const Runs& runs, const std::string& name, const std::string& metric) {
  CommonFigure figure{name, {}};
  for (const RunRecord* run : runs) {
    const std::optional<double> value = value_of(*run, metric);
    if (!value) return std::nullopt;
    figure.MiB.push_back(*value);
  }
  return figure;
}

}  // namespace

Runs runs_to_ask(const std::vector<RunRecord>& runs) {
  static const std::vector<std::string> same = {
      "job",          "strategy",   "offload_optimizer", "offload_param", "units_on_device", "pin_memory",
      "nodes",        "ranks",      "num_parameters",    "precision",     "label_mode",      "batch_size",
      "accumulation", "train_rows", "num_layers"};
  Runs newest;
  std::map<std::string, std::size_t> place_of;
  for (const RunRecord& run : runs) {
    if (!has_finished(run)) continue;
    const auto [place, is_new] = place_of.emplace(facts_key(run, same), newest.size());
    if (is_new) {
      newest.push_back(&run);
    } else if (run.started > newest[place->second]->started) {
      newest[place->second] = &run;
    }
  }
  return newest;
}

std::vector<Runs> grouped_by(const Runs& runs, const std::vector<std::string>& facts) {
  std::vector<Runs> groups;
  std::map<std::string, std::size_t> place_of;
  for (const RunRecord* run : runs) {
    const auto [place, is_new] = place_of.emplace(facts_key(*run, facts), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(run);
  }
  return groups;
}

Runs by_number(const Runs& runs, const std::string& fact) {
  Runs sorted;
  for (const RunRecord* run : runs) {
    if (run->facts.number(fact)) sorted.push_back(run);
  }
  const auto less = [&](const RunRecord* a, const RunRecord* b) {
    return number_fact(*a, fact) < number_fact(*b, fact);
  };
  std::stable_sort(sorted.begin(), sorted.end(), less);
  const auto is_equal = [&](const RunRecord* a, const RunRecord* b) {
    return number_fact(*a, fact) == number_fact(*b, fact);
  };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), is_equal), sorted.end());
  return sorted;
}

double number_fact(const RunRecord& run, const std::string& fact) {
  return run.facts.number(fact).value_or(0);
}

bool offloads(const RunRecord& run) {
  return fact_is_true(run, "offload_optimizer") || fact_is_true(run, "offload_param");
}

std::string model_text(const RunRecord& run) {
  const std::optional<double> parameters = run.facts.number("num_parameters");
  return job_text(run) +
         (parameters ? fmt::format(", {} parameters", grouped(static_cast<long long>(*parameters))) : "");
}

std::string ranks_text(const RunRecord& run) {
  const int ranks = num_ranks(run), nodes = num_nodes(run);
  return fmt::format("{} rank{} on {} node{}", ranks, ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
}

std::string percent_text(double now, double before) {
  return before == 0 ? "?" : fmt::format("{:+.1f} %", 100 * (now - before) / before);
}

std::optional<CommonFigure> common_peak(const Runs& runs) {
  if (auto figure = figure_of_all(runs, "allocated", "allocated_peak_MB")) return figure;
  if (auto figure = figure_of_all(runs, "used, by NVML", "used_peak_MB")) return figure;
  return figure_of_all(runs, "used, by the memory log of the first GPU", "gpu_log_peak_MB");
}

std::optional<CommonFigure> common_average(const Runs& runs) {
  if (auto figure = figure_of_all(runs, "used, by NVML", "used_mean_MB")) return figure;
  return figure_of_all(runs, "used, by the memory log of the first GPU", "gpu_log_average_MB");
}

}  // namespace tessera::internal

namespace tessera {
namespace {

using internal::Runs;

struct Question {
  std::string name;                                     // as tables name it
  std::string question;                                 // as asked where no run can answer it
  std::function<std::vector<Answer>(const Runs&)> ask;  // empty: these runs are not of its kind
  std::string needs;                                    // what runs would be
  bool asks_family = false;                             // compares rows of several tables
};

std::vector<Question> questions_about(const std::vector<ModelSize>& models) {
  return {
      {"lowest_peak", "Which strategy has the lowest peak GPU memory?", internal::lowest_peak,
       "runs of two strategies with one model and equally many ranks"},
      {"cost_of_offload", "What does offload cost?", internal::cost_of_offload,
       "a run with offload and one without, otherwise alike"},
      {"memory_under_weak_scaling", "Is peak memory per GPU constant under weak scaling?",
       internal::memory_under_weak_scaling, "two runs whose layers grow with the ranks"},
      {"speed_under_weak_scaling", "Are samples/s constant under weak scaling?", internal::speed_under_weak_scaling,
       "two runs whose layers grow with the ranks"},
      {"memory_with_more_nodes", "Average GPU memory with more nodes: up, down, stable?",
       internal::memory_with_more_nodes, "runs on two numbers of nodes, otherwise alike"},
      {"effect_of_pinning", "Does pinning help?", internal::effect_of_pinning,
       "a run with offload to pinned memory and one to plain memory, otherwise alike"},
      {"sharding_on_one_gpu", "FSDP on 1 GPU: does memory drop?", internal::sharding_on_one_gpu,
       "runs of 'single' and of 'full_shard' on one rank"},
      {"share_of_blocks",
       fmt::format("How much of {} is in its blocks?", models.empty() ? "a model" : models.front().name),
       [models](const Runs& runs) { return internal::share_of_blocks(runs, models); }, "a run of a BLOOM model"},
      {"within_or_across_nodes", "Within a node or across nodes, with equally many GPUs?",
       internal::within_against_across_nodes, "a run on one node and one on several, with equally many ranks", true},
      {"loss_across_gpu_counts", "Is the loss alike across GPU counts?", internal::loss_across_gpu_counts,
       "runs on two numbers of ranks, otherwise alike"},
      {"trainer_or_callback", "How do the callback's samples/s differ from the trainer's?",
       internal::trainer_against_callback, "a run that logged its speed"},
  };
}

void ask(const Question& question, const Runs& runs, std::vector<Answer>& answers) {
  std::vector<Answer> found = question.ask(runs);
  if (found.empty()) found.push_back({question.question, "", "", "it needs " + question.needs});
  answers.insert(answers.end(), found.begin(), found.end());
}

[[noreturn]] void refuse_question(const TableSpec& table, const std::string& name, const std::vector<Question>& all) {
  std::vector<std::string> names;
  for (const Question& question : all) names.push_back(question.name);
  const std::optional<std::string> meant = nearest(name, names);
  throw UsageError(fmt::format("{}: table {}: unknown question '{}'{}; questions: {}", table.file, table.name,
                               printable(name, 40), meant ? fmt::format(", did you mean '{}'?", *meant) : "",
                               join(names, ", ")));
}

}  // namespace

std::vector<Answer> answer_questions(const std::vector<RunRecord>& runs, const std::vector<ModelSize>& models) {
  const Runs asked = internal::runs_to_ask(runs);
  std::vector<Answer> answers;
  for (const Question& question : questions_about(models)) ask(question, asked, answers);
  return answers;
}

std::vector<Answer> answer_table_questions(const TableSpec& table, const std::vector<RunRecord>& rows,
                                           const std::vector<RunRecord>& family, const std::vector<ModelSize>& models) {
  const std::vector<Question> all = questions_about(models);
  const Runs of_rows = internal::runs_to_ask(rows), of_family = internal::runs_to_ask(family);
  std::vector<Answer> answers;
  for (const std::string& name : table.questions) {
    const auto question = std::find_if(all.begin(), all.end(), [&](const Question& each) { return each.name == name; });
    if (question == all.end()) refuse_question(table, name, all);
    ask(*question, question->asks_family ? of_family : of_rows, answers);
  }
  return answers;
}

std::string answers_text(const std::vector<Answer>& answers, bool markdown) {
  std::string text;
  for (const Answer& answer : answers) {
    const std::string said = answer.why_not.empty() ? answer.answer : "cannot be answered: " + answer.why_not;
    const auto line = [&](const std::string& words) {
      return markdown ? markdown_escaped(words) : printable(words, 2000);
    };
    text += fmt::format("{}{}\n  {}\n", markdown ? "- " : "", line(answer.question), line(said));
    if (!answer.arithmetic.empty()) text += fmt::format("  {}\n", line(answer.arithmetic));
  }
  return text;
}

}  // namespace tessera
