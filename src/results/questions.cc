#include "results/questions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "record/metrics.h"
#include "results/question_parts.h"
#include "results/tables/table.h"

namespace tessera::internal {
namespace {

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
  return counted(num_ranks(run), "rank") + " on " + counted(num_nodes(run), "node");
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

using internal::Answers;
using internal::Question;
using internal::Runs;

std::vector<Question> questions_about(const std::vector<ModelSize>& models) {
  using namespace internal;
  const std::vector<std::string> weakly_scaled = {"job", "strategy", "precision", "global_batch"};
  const std::vector<std::string> setup = {"job", "num_parameters", "strategy", "ranks", "nodes", "batch_size"};
  return {
      {"lowest_peak",
       "Which strategy has the lowest peak GPU memory?",
       "runs of two strategies with one model and equally many ranks",
       {"job", "num_parameters", "ranks", "nodes", "batch_size"},
       lowest_peak,
       false},
      {"cost_of_offload", "What does offload cost?", "a run with offload and one without, otherwise alike", setup,
       cost_of_offload},
      {"memory_under_weak_scaling", "Is peak memory per GPU constant under weak scaling?",
       "two runs whose layers grow with the ranks", weakly_scaled, memory_under_weak_scaling},
      {"speed_under_weak_scaling", "Are samples/s constant under weak scaling?",
       "two runs whose layers grow with the ranks", weakly_scaled, speed_under_weak_scaling},
      {"memory_with_more_nodes",
       "Average GPU memory with more nodes: up, down, stable?",
       "runs on two numbers of nodes, otherwise alike",
       {"job", "num_parameters", "strategy", "offload_optimizer", "units_on_device", "pin_memory", "ranks_per_node",
        "batch_size"},
       memory_with_more_nodes},
      {"effect_of_pinning", "Does pinning help?",
       "a run with offload to pinned memory and one to plain memory, otherwise alike", setup, effect_of_pinning},
      {"sharding_on_one_gpu",
       "FSDP on 1 GPU: does memory drop?",
       "runs of 'single' and of 'full_shard' on one rank",
       {"job", "num_parameters", "ranks", "batch_size", "precision"},
       sharding_on_one_gpu},
      {"share_of_blocks",
       fmt::format("How much of {} is in its blocks?", models.empty() ? "a model" : models.front().name),
       "a run of a BLOOM model",
       {"job", "num_parameters"},
       [models](const Question&, const Runs& group, Answers& answers) { share_of_blocks(group, models, answers); }},
      {"within_or_across_nodes",
       "Within a node or across nodes, with equally many GPUs?",
       "a run on one node and one on several, with equally many ranks",
       {"job", "num_parameters", "strategy", "offload_optimizer", "units_on_device", "pin_memory", "ranks",
        "batch_size"},
       within_against_across_nodes,
       true,
       true},
      {"loss_across_gpu_counts",
       "Is the loss alike across GPU counts?",
       "runs on two numbers of ranks, otherwise alike",
       {"job", "num_parameters", "label_mode", "precision", "batch_size"},
       loss_across_gpu_counts},
      {"trainer_or_callback",
       "How do the callback's samples/s differ from the trainer's?",
       "a run that logged its speed",
       {},
       trainer_against_callback},
  };
}

// Groups of runs with equal facts of these names, in the order of their first runs.
std::vector<Runs> grouped_by(const Runs& runs, const std::vector<std::string>& facts) {
  std::vector<std::pair<std::string, Runs>> by_facts;
  for (const RunRecord* run : runs) {
    std::string key;
    for (const std::string& fact : facts) key += fact_text(*run, fact) + "\n";
    value_beside(by_facts, key).push_back(run);
  }
  std::vector<Runs> groups;
  for (auto& [key, group] : by_facts) groups.push_back(std::move(group));
  return groups;
}

// Finished runs, and of those with the same facts only the newest.
Runs runs_to_ask(const std::vector<RunRecord>& runs) {
  Runs finished, newest;
  for (const RunRecord& run : runs) {
    if (has_finished(run)) finished.push_back(&run);
  }
  for (const Runs& same :
       grouped_by(finished, {"job", "strategy", "offload_optimizer", "offload_param", "units_on_device", "pin_memory",
                             "nodes", "ranks", "num_parameters", "precision", "label_mode", "batch_size",
                             "accumulation", "train_rows", "num_layers"})) {
    newest.push_back(*std::max_element(same.begin(), same.end(),
                                       [](const RunRecord* a, const RunRecord* b) { return a->started < b->started; }));
  }
  return newest;
}

void ask(const Question& question, Runs runs, Answers& answers) {
  const std::size_t num_before = answers.size();
  if (!question.asks_offload) std::erase_if(runs, [](const RunRecord* run) { return internal::offloads(*run); });
  for (const Runs& group : grouped_by(runs, question.equal_facts)) question.ask(question, group, answers);
  if (answers.size() == num_before) answers.push_back({question.question, "", "", "it needs " + question.needs});
}

[[noreturn]] void refuse_question(const TableSpec& table, const std::string& name, const std::vector<Question>& all) {
  std::vector<std::string> names;
  for (const Question& question : all) names.push_back(question.name);
  throw UsageError(fmt::format("{}: table {}: unknown question '{}'{}; questions: {}", table.file, table.name,
                               printable(name, 40), did_you_mean(name, names), join(names, ", ")));
}

}  // namespace

std::vector<Answer> answer_questions(const std::vector<RunRecord>& runs, const std::vector<ModelSize>& models) {
  const Runs asked = runs_to_ask(runs);
  Answers answers;
  for (const Question& question : questions_about(models)) ask(question, asked, answers);
  return answers;
}

std::vector<Answer> answer_table_questions(const TableSpec& table, const std::vector<RunRecord>& rows,
                                           const std::vector<RunRecord>& family, const std::vector<ModelSize>& models) {
  const std::vector<Question> all = questions_about(models);
  const Runs of_rows = runs_to_ask(rows), of_family = runs_to_ask(family);
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
    const auto line = [&](const std::string& words) {
      return markdown ? markdown_escaped(words) : printable(words, 2000);
    };
    text += fmt::format("{}{}\n  {}\n", markdown ? "- " : "", line(answer.question), line(answer.said()));
    if (!answer.arithmetic.empty()) text += fmt::format("  {}\n", line(answer.arithmetic));
  }
  return text;
}

}  // namespace tessera
