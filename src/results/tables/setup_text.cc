#include "results/tables/setup_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "record/figures.h"

namespace tessera {
namespace {

std::string number_of(int number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::string setup_text(const Experiment& experiment, const RunRecord* run) {
  int nodes = experiment.nodes, gpus = experiment.num_gpus();
  if (run != nullptr && num_ranks(*run) > 0) {
    nodes = std::max(1, num_nodes(*run));
    gpus = num_ranks(*run);
  }
  if (gpus % nodes != 0) return fmt::format("{}, {}", number_of(nodes, "node"), number_of(gpus, "GPU"));
  return fmt::format("{} x {}", number_of(nodes, "node"), number_of(gpus / nodes, "GPU"));
}

}  // namespace tessera
