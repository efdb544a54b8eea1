// Repeats of one experiment as one row: the median of each figure, and its spread. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/tables/declaration.h"

namespace tessera {

// "12.500 (12.100 to 12.900)": the median, the smallest and the largest; the value is the median. Figures that are
// equal in all repeats are shown once.
Found found_of_repeats(const std::vector<Found>& repeats, int digits);

// The repeat whose runtime is the median; of an even number the faster of the middle two. 0 where none has a runtime.
std::size_t median_repeat(const std::vector<RunRecord>& repeats);

}  // namespace tessera
