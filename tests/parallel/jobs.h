// The models of the tests of parity, each with data that any number of ranks from 1 to 4 divides among them.
#pragma once

#include <string>
#include <vector>

#include "parallel/training.h"

namespace tessera {

struct NamedJob {
  std::string name;
  MakeJob make;
  Training how;  // optimizer, learning rate
};

NamedJob odd_job();    // SmallModel: everything that makes spreading hard
NamedJob bloom_job();  // BLOOM and the GPT-like model, sequences of many lengths
NamedJob gpt_job();
NamedJob resnet_job();         // batch norms by the statistics of one rank's images, as everywhere
NamedJob frozen_resnet_job();  // batch norms by their running statistics, so that the number of ranks does not matter
std::vector<NamedJob> all_jobs();
NamedJob resnet50_job();  // the real one: seconds a step

// The distinct rows of the table that so many ranks can use; names of the same row are left out.
std::vector<Row> rows_of_table(int num_ranks);
// Each of them with everything in host memory that it can have there.
std::vector<Row> offloaded_rows(int num_ranks);

}  // namespace tessera
