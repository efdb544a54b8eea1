// The models of the parity tests, each with data that 1 to 4 ranks can divide among them.
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
NamedJob llama_job();  // today's decoders: the plain one, and the one with the most variants, whose head is tied
NamedJob gemma3_job();
NamedJob resnet_job();         // batch norms with the statistics of one rank's images, as usual
NamedJob frozen_resnet_job();  // batch norms with running statistics, so that the number of ranks does not matter
std::vector<NamedJob> all_jobs();
NamedJob resnet50_job();  // the real one: seconds per step

// The distinct rows of the table for this many ranks; other names of the same row are left out.
std::vector<Row> rows_of_table(int num_ranks);
// Each of these rows, with everything in host memory that it can have there.
std::vector<Row> offloaded_rows(int num_ranks);
std::vector<std::string> rows_that_use_nodes();

}  // namespace tessera
