#include "cli/version.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "cli/experiment_command.h"
#include "comm/gpu_support.h"
#include "comm/mpi_support.h"

namespace tessera {
namespace {

// The headers' version is known when compiling; the library that was loaded names its own among its build settings.
std::string running_torch_version() {
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::string settings = at::show_config();
  const std::size_t start = settings.find(kName);
  if (start == std::string::npos) return "of unknown version";
  return settings.substr(start + kName.size(), settings.find_first_of(", \n", start) - start - kName.size());
}

std::string cuda_line() {
  const std::string flavour = cuda_flavour_text();
  return flavour.empty() ? "no CUDA flavour" : flavour;
}

std::string mpi_line() {
  const std::string found = mpi_library_version();
  return found.empty() ? "no MPI: `tessera env` says why" : found;
}

}  // namespace

std::string version_text() {
  return fmt::format("{}\ntorch {}, built with {}\n{}\n{}\n", this_program().version_line(), running_torch_version(),
                     TORCH_VERSION, cuda_line(), mpi_line());
}

}  // namespace tessera
