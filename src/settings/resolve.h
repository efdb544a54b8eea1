// From the words that were read to TrainSettings, and the refusal of what makes no sense together. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/declared.h"

namespace tessera {

struct Resolution {
  std::optional<int> num_ranks;  // where they are known
  bool needs_data = true;        // false: only to show settings
};

// After all sources were read. Follows from other settings what they leave open (the schema is told, with an origin
// that says from what) and fills s.train. Throws UsageError on the first contradiction.
void resolve(Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
             std::vector<std::string>& notes);

// For the jobs' own part of it.

// "--fp16=true (command line)", "fp16=true (ds.json: fp16.enabled)": how messages name a setting with its value.
std::string shown(const Schema& schema, const std::string& name);
// A value that follows from others, told to the schema so that --print_config shows it and why.
void follow(Schema& schema, const std::string& name, std::int64_t value, const std::string& from);
// Throws UsageError "<what> is missing" where the value is empty.
void require(const std::string& value, const std::string& what);

namespace internal {

// resolve()'s last part.
void check_combinations(const Schema& schema, const JobTraits& job, const DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes);

}  // namespace internal
}  // namespace tessera
