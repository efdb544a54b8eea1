#include "parallel/placement.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// Another source would be taken for a second copy within the node.
TEST(Placement, BackwardGathersFromWhereParametersAreOrFromTheNode) {
  for (const std::string& name : strategy_names()) {
    const Placement& row = placement_of(name);
    EXPECT_TRUE(row.backward_gathers_from == row.parameters.over || row.backward_gathers_from == Over::kNode) << name;
  }
}

TEST(Placement, OnlySplitParametersAreReleased) {
  for (const std::string& name : strategy_names()) {
    const Placement& row = placement_of(name);
    EXPECT_TRUE(row.parameters.is_split() || !row.released_after_forward) << name;
  }
}

}  // namespace
}  // namespace tessera
