#include "cli/version.h"

#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <filesystem>

#include "cli/experiment_command.h"
#include "comm/gpu_fitness.h"
#include "comm/mpi_support.h"
#include "comm/own_folder.h"

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

// The flavour is a library of its own, which a package may leave out. Loading it would take seconds.
std::string cuda_line() {
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(own_folder() / "libtessera_cuda.so", ignored);
  const std::string flavour = cuda_flavour_text();
  return is_there && !flavour.empty() ? flavour : "no CUDA flavour";
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
