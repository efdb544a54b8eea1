#include "results/questions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "results/question_parts.h"
#include "results/tables/table.h"

namespace tessera {
namespace {

using internal::Runs;

struct QuestionDeclaration {
  std::string question;                     // as asked where no run can answer it
  std::vector<Answer> (*ask)(const Runs&);  // empty: these runs are not of its kind
  std::string needs;                        // what runs would be
  std::vector<std::string> tables;          // that it belongs to
  bool asks_family = false;                 // compares rows of several tables
};

const std::vector<QuestionDeclaration>& questions() {
  static const std::string single = "deepspeed/single_gpu", stages = "deepspeed/multi_gpu/2_gpus_stages_comparison",
                           weak = "fsdp/custom_model/weak_scaling";
  static const std::vector<QuestionDeclaration> all = {
      {"Which strategy has the lowest peak GPU memory?",
       internal::lowest_peak,
       "runs of two strategies with one model and equally many ranks",
       {single, stages, "fsdp/bloom/single_gpu"}},
      {"What does offload cost?",
       internal::cost_of_offload,
       "a run with offload and one without, otherwise alike",
       {single, stages}},
      {"Is peak memory per GPU constant under weak scaling?",
       internal::memory_under_weak_scaling,
       "two runs whose layers grow with the ranks",
       {weak}},
      {"Are samples/s constant under weak scaling?",
       internal::speed_under_weak_scaling,
       "two runs whose layers grow with the ranks",
       {weak}},
      {"Average GPU memory with more nodes: up, down, stable?",
       internal::memory_with_more_nodes,
       "runs on two numbers of nodes, otherwise alike",
       {"deepspeed/multi_node", "fsdp/bloom/multi_node", "fsdp/custom_model/multi_node"}},
      {"Does pinning help?",
       internal::effect_of_pinning,
       "a run with offload to pinned memory and one to plain memory, otherwise alike",
       {single}},
      {"FSDP on 1 GPU: does memory drop?",
       internal::sharding_on_one_gpu,
       "runs of 'single' and of 'full_shard' on one rank",
       {"fsdp/bloom/single_gpu"}},
      {"How much of BLOOM-560M is in its blocks?",
       internal::share_of_blocks,
       "a run of a BLOOM model",
       {"fsdp/bloom/baseline", "fsdp/bloom/single_gpu"}},
      {"Within a node or across nodes, with equally many GPUs?",
       internal::within_against_across_nodes,
       "a run on one node and one on several, with equally many ranks",
       {"ddp/multi_node", "fsdp/bloom/multi_node", "fsdp/custom_model/multi_node", "deepspeed/multi_node"},
       true},
      {"Is the loss alike across GPU counts?",
       internal::loss_across_gpu_counts,
       "runs on two numbers of ranks, otherwise alike",
       {"ddp/multi_gpu", "ddp/multi_node", "fsdp/bloom/multi_gpu", "fsdp/bloom/multi_node",
        "fsdp/custom_model/multi_gpu", "fsdp/custom_model/multi_node", "deepspeed/multi_gpu", "deepspeed/multi_node"}},
      {"How do the callback's samples/s differ from the trainer's?",
       internal::trainer_against_callback,
       "a run that logged its speed",
       {"fsdp/custom_model/multi_gpu", "fsdp/custom_model/multi_node"}},
  };
  return all;
}

void ask(const QuestionDeclaration& question, const Runs& runs, std::vector<Answer>& answers) {
  std::vector<Answer> found = question.ask(runs);
  if (found.empty()) found.push_back({question.question, "", "", "it needs " + question.needs});
  answers.insert(answers.end(), found.begin(), found.end());
}

}  // namespace

std::vector<Answer> answer_questions(const std::vector<RunRecord>& runs) {
  const Runs asked = internal::runs_to_ask(runs);
  std::vector<Answer> answers;
  for (const QuestionDeclaration& question : questions()) ask(question, asked, answers);
  return answers;
}

std::vector<Answer> answer_table_questions(const std::string& table, const std::vector<RunRecord>& rows,
                                           const std::vector<RunRecord>& family) {
  const Runs of_rows = internal::runs_to_ask(rows), of_family = internal::runs_to_ask(family);
  std::vector<Answer> answers;
  for (const QuestionDeclaration& question : questions()) {
    if (std::find(question.tables.begin(), question.tables.end(), table) == question.tables.end()) continue;
    ask(question, question.asks_family ? of_family : of_rows, answers);
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
