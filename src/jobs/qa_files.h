// The questions and answers of a job, read from the files that the settings name. Every rank reads the same files and
// gets the same result or refusal.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "data/text/token_cache.h"
#include "jobs/answers.h"
#include "jobs/jobs.h"
#include "jobs/text_model.h"

namespace tessera {

TextData open_qa_training(const TrainSettings& settings, const OpenedModel& model, const Environment& environment);

struct QaEvaluationData {
  TextData text;
  std::vector<QaPrompt> prompts;  // of the same rows; empty if nothing is generated
};

// The rows of the validation file. Throws UsageError if answers are compared and no row has any.
QaEvaluationData open_qa_evaluation(const TrainSettings& settings, const OpenedModel& model,
                                    const Environment& environment);

// For runs without --train_file.
struct FoundSquad {
  std::filesystem::path training, validation;  // validation is empty if it is not beside the other
};

// In `data_dir` (unless empty), data/ and squad/ of the folder `here`, and Hugging Face's cache of data sets. Throws
// UsageError that names the folders. If that cache has SQuAD as Arrow files, it also says how to make a file of them.
FoundSquad find_squad(const std::string& data_dir, const Environment& environment,
                      const std::filesystem::path& here = {});

// What the question-answering jobs share: settings, data, the run itself (qa_job.cc). Their own files provide the
// model.

// Without name, summary, model and the presets that differ.
JobTraits qa_traits();
// Their JobTraits::resolve: looks for SQuAD if no file is given. Throws UsageError if it is not found.
void resolve_qa_files(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes);

// Their Job::open; `config`: see open_text_model.
std::unique_ptr<OpenJob> open_qa_job(World& world, const LoadedTrainSettings& run,
                                     const std::optional<std::filesystem::path>& checkpoint,
                                     ScratchConfig config = nullptr);

}  // namespace tessera
