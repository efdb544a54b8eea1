// What of a script becomes the experiment: which job it trains, its arguments and exported variables as that job's
// settings, what it reserves. (no torch)
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "core/json.h"
#include "experiment/import/script_reader.h"
#include "settings/declared.h"

namespace tessera {

// By the model's name, the sizes of a model from scratch, or image data. `wanted` (of --job) decides if it is not
// empty. With the reason: "MODEL_NAME is bigscience/bloom-560m". Throws UsageError if the script points to no job or to
// several.
std::pair<const JobTraits*, std::string> guess_job(const LaunchLine& launch, const std::vector<const JobTraits*>& jobs,
                                                   const std::string& wanted);

struct ImportedSettings {
  Values settings;     // of the experiment
  Values own_folder;   // output_dir and the like: an experiment's runs have their own, a plain command needs them
  Values environment;  // exported before the run: NCCL's variables and others that libraries read
};

// Throws UsageError, with the place, for a value that its setting does not allow and for two names of one setting that
// differ.
ImportedSettings imported_settings(const JobTraits& job, ScriptFacts& script);

// The settings' parts (script_arguments.cc): which arguments and exported variables are settings of `tessera train`,
// which the run needs, which it does not.
//
// Words for the schema's read_command_line(), "--name=value" each; a remark on every argument that is not among them.
std::vector<std::string> arguments_for(const Schema& schema, const std::string& job, ScriptFacts& script);

// The variables whose names are in `setting_names`; `kept` gets those for the experiment's environment.
Environment read_script_environment(const std::vector<std::string>& setting_names, ScriptFacts& script, Values& kept);

// What the script reserves and how many ranks it starts. The launch line decides about ranks, the #SBATCH lines about
// the rest; where they differ, a remark says so.
Values imported_resources(ScriptFacts& script);

// A setting's text as the JSON value that a person would write: "true" -> true, "500" -> 500, "5e-05" -> 5e-05; a text
// that is not exactly such a value stays a text: "0123", "1e400".
Json typed_json(const std::string& text);

}  // namespace tessera
