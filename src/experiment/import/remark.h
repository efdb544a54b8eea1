// What became of one thing in a script, for the user who moves it. (no torch)
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Remark {
  enum class Kind {
    kTaken,      // is in the experiment
    kSite,       // a fact of the cluster: belongs to the site file
    kNotNeeded,  // Tessera does without it, or does it itself
    kComputed,   // only a shell can compute the value
    kLeftOut,    // not understood, or not in Tessera: the run may differ
  };
  Kind kind;
  std::string place;      // "train.sbatch:12"; empty: the script as a whole
  std::string what, why;  // "--partition=gpu", "..."
};

using Remarks = std::vector<Remark>;

}  // namespace tessera
