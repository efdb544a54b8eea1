// From the words that were read to TrainSettings, and the refusal of what makes no sense together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/declared.h"

namespace tessera {

struct Translation {
  std::optional<int> num_ranks;  // where they are known
  bool needs_data = true;        // false: only to show settings
};

// After all sources were read. Follows from other settings what they leave open (the schema is told, with an origin
// that says from what) and fills s.train. Throws UsageError on the first contradiction.
void translate(Schema& schema, DeclaredSettings& s, const Translation& how, std::vector<std::string>& notes);

namespace internal {

// "--fp16=true (command line)", "fp16=true (ds.json: fp16.enabled)": how messages name a setting with its value.
std::string shown(const Schema& schema, const std::string& name);

// translate()'s last part.
void check_combinations(const Schema& schema, const DeclaredSettings& s, const Translation& how,
                        std::vector<std::string>& notes);

}  // namespace internal
}  // namespace tessera
