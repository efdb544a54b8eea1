// The slopes of ALiBi: one per head, by the rule of the paper's authors, which BLOOM follows.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// For 2^n heads: the powers 1, 2, ... of 2^(-8 / 2^n). For another number H: the slopes of the next smaller power of
// two, then every second slope of the next larger one, from its first, until there are H.
std::vector<float> alibi_slopes(std::int64_t num_heads);

}  // namespace tessera
