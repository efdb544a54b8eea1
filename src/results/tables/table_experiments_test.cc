#include "experiment/table_experiments.h"

#include <gtest/gtest.h>

#include "results/tables/declaration.h"
#include "support/catalogue_experiments.h"

namespace tessera {
namespace {

TEST(TableExperiments, FillEveryDeclaredTable) {
  const std::vector<Experiment>& all = catalogue_experiments();
  EXPECT_EQ(all.size(), 7u + 11u + 11u + 26u);  // ddp, fsdp/bloom, fsdp/custom_model, deepspeed
  for (const TableDeclaration& table : declared_tables()) {
    for (const std::string& folder : table.folders) EXPECT_FALSE(experiments_in(all, folder).empty()) << folder;
    EXPECT_TRUE(table.baseline.empty() || find_experiment(all, table.baseline) != nullptr) << table.baseline;
  }
  EXPECT_EQ(experiments_in(all, "deepspeed/multi_gpu").size(), 4u);  // not those of 2_gpus_stages_comparison
  for (const Experiment& experiment : all) EXPECT_TRUE(is_in_declared_table(experiment)) << experiment.name;
  const Experiment* nodes = find_experiment(all, "ddp/multi_node/4_nodes");
  ASSERT_NE(nodes, nullptr);
  EXPECT_EQ(nodes->nodes, 4);
  EXPECT_EQ(nodes->num_gpus(), 8);
  EXPECT_EQ(nodes->study.kind, StudyKind::kThroughput);
  EXPECT_EQ(nodes->study.baseline, "ddp/baseline");
}

}  // namespace
}  // namespace tessera
