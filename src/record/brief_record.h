// A run's record without its bulk, so that a thousand records are read in a second. (no torch)
#pragma once

#include <string>
#include <string_view>

namespace tessera {

inline constexpr std::size_t kBriefMetrics = 16;

// The text of a run.json with empty "series" of its ranks and with only the last kBriefMetrics entries of "metrics",
// and the last evaluation if it was before them; without its settings, unless they are kept or there are no facts.
// Nothing is parsed: text that is not of the expected form comes back as it is, for the parser to refuse.
std::string brief_record(std::string_view text, bool keeps_settings);

}  // namespace tessera
