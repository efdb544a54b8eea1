// Numbers of all ranks added up: each rank the same bits, in the order of the ranks.
#pragma once

#include <string>
#include <vector>

#include "tessera/world.h"

namespace tessera {

// Collective; every rank gives as many.
std::vector<double> sum_over_ranks(World& world, const std::vector<double>& own);

// By rank. Collective; every rank gives as many.
std::vector<std::vector<double>> gather_numbers(World& world, const std::vector<double>& own);

// By rank; each is cut to 255 bytes. Collective.
std::vector<std::string> gather_texts(World& world, const std::string& own);

}  // namespace tessera
