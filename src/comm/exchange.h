// Sums and gathers small values over all ranks. Sums are added in rank order: every rank gets the same bits.
#pragma once

#include <string>
#include <vector>

#include "tessera/world.h"

namespace tessera {

// Collective; every rank passes the same number of values.
std::vector<double> sum_over_ranks(World& world, const std::vector<double>& own);

// By rank. Collective; every rank passes the same number of values.
std::vector<std::vector<double>> gather_numbers(World& world, const std::vector<double>& own);

// By rank; each is cut to 255 bytes. Collective.
std::vector<std::string> gather_texts(World& world, const std::string& own);

}  // namespace tessera
