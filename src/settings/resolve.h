// Turns the words that were read into TrainSettings, and refuses combinations that make no sense. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/declared.h"

namespace tessera {

struct Resolution {
  std::optional<int> num_ranks;  // if known
  bool needs_data = true;        // false: only to show settings
};

// Call after all sources are read. Derives open values from other settings (the schema records them with that origin)
// and fills s.train. Throws UsageError on the first contradiction.
void resolve(Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
             std::vector<std::string>& notes);

// For the jobs' own checks.

// "--fp16=true (command line)", "fp16=true (ds.json: fp16.enabled)": how messages name a setting with its value.
std::string shown(const Schema& schema, const std::string& name);
// Records a derived value in the schema, so that --print_config shows it and where it comes from.
void follow(Schema& schema, const std::string& name, std::int64_t value, const std::string& from);
// Throws UsageError "<what> is missing" if the value is empty.
void require(const std::string& value, const std::string& what);

namespace internal {

// The last part of resolve().
void check_combinations(const Schema& schema, const JobTraits& job, const DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes);

}  // namespace internal
}  // namespace tessera
