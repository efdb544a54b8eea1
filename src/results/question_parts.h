// What the answers to questions share: choosing runs that may be compared, and writing numbers. For questions.cc and
// the files of the questions alone. (no torch)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results/questions.h"

namespace tessera::internal {

using Runs = std::vector<const RunRecord*>;
using Answers = std::vector<Answer>;

struct Question {
  std::string name;      // as tables name it
  std::string question;  // as asked where no run can answer it
  std::string needs;     // what runs could
  // Runs are asked in groups in which these facts are equal. Adds nothing where a group is not of the question's kind.
  std::vector<std::string> equal_facts;
  std::function<void(const Question&, const Runs& group, Answers&)> ask;
  bool asks_offload = true;  // also runs with offload
  bool asks_family = false;  // compares rows of several tables
};

// Sorted by a fact that is a number, without runs that do not have it and without further runs of an equal number.
Runs by_number(const Runs& runs, const std::string& fact);

double number_fact(const RunRecord& run, const std::string& fact);  // 0: it has none
bool offloads(const RunRecord& run);
std::string model_text(const RunRecord& run);         // "bloom-qa, 559,214,592 parameters"
std::string ranks_text(const RunRecord& run);         // "4 ranks on 2 nodes"
std::string percent_text(double now, double before);  // "+12.5 %"

// A figure that all of these runs have: the same one for all, with its name. None: no figure is common to them.
struct CommonFigure {
  std::string name;
  std::vector<double> MiB;  // per run
};
std::optional<CommonFigure> common_peak(const Runs& runs);     // allocated, else used by NVML, else of the memory log
std::optional<CommonFigure> common_average(const Runs& runs);  // used by NVML, else of the memory log

// How each question is asked of a group.
void lowest_peak(const Question& question, const Runs& group, Answers& answers);
void memory_under_weak_scaling(const Question& question, const Runs& group, Answers& answers);
void memory_with_more_nodes(const Question& question, const Runs& group, Answers& answers);
void sharding_on_one_gpu(const Question& question, const Runs& group, Answers& answers);
void share_of_blocks(const Runs& group, const std::vector<ModelSize>& models, Answers& answers);
void cost_of_offload(const Question& question, const Runs& group, Answers& answers);
void speed_under_weak_scaling(const Question& question, const Runs& group, Answers& answers);
void effect_of_pinning(const Question& question, const Runs& group, Answers& answers);
void within_against_across_nodes(const Question& question, const Runs& group, Answers& answers);
void loss_across_gpu_counts(const Question& question, const Runs& group, Answers& answers);
void trainer_against_callback(const Question& question, const Runs& group, Answers& answers);

}  // namespace tessera::internal
