// Turns the words that were read into TrainSettings, and refuses combinations that make no sense. (no torch)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "settings/declared.h"

namespace tessera {

struct Resolution {
  std::optional<int> num_ranks;  // if known
  bool needs_data = true;        // false: only to show settings
  Environment environment{};     // tells where other programs keep their files
};

// Call after all sources are read. Derives open values from other settings (the schema records them with that origin)
// and fills s.train. Throws UsageError on the first contradiction.
void resolve(Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
             std::vector<std::string>& notes);

// What train_batch_size leaves open: the schema's own values of per_device_train_batch_size and
// gradient_accumulation_steps where they fit, else its batch size with another accumulation, else an accumulation of 1,
// as DeepSpeed does. A note says what was chosen. Throws UsageError if the product is not `total`; 0: nothing is asked.
void resolve_batch(Schema& schema, std::int64_t total, const std::int64_t& batch_size, const std::int64_t& accumulation,
                   int num_ranks, std::vector<std::string>& notes);

// For the jobs' own checks.

// "--fp16=true (command line)", "fp16=true (ds.json: fp16.enabled)": how messages name a setting with its value.
std::string shown(const Schema& schema, const std::string& name);
// Records a derived value in the schema, so that --print_config shows it and where it comes from.
void follow(Schema& schema, const std::string& name, std::int64_t value, const std::string& from);
// `name` was given and replaces `other`: refuses both from one source, and notes that the higher source wins.
void overrule(const Schema& schema, const std::string& name, const std::string& other, std::vector<std::string>& notes);
// Throws UsageError "<what> is missing" if the value is empty.
void require(const std::string& value, const std::string& what);

namespace internal {

// The last part of resolve().
void check_combinations(const Schema& schema, const JobTraits& job, const DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes);

}  // namespace internal
}  // namespace tessera
