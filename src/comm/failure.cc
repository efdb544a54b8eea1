#include "comm/failure.h"

#include <c10/util/Exception.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "core/environment.h"
#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "core/output.h"
#include "core/text.h"

namespace tessera {
namespace {

// This rank's number from the environment, unchecked: an error is already being reported.
int rank_for_messages() {
  const Environment environment = Environment::of_process();
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const auto value = environment.find(name)) return static_cast<int>(parse_integer(*value).value_or(0));
  }
  return 0;
}

}  // namespace

void record_failure(Failure failure) noexcept {
  try {
    const auto path = Environment::of_process().find("TESSERA_FAILURE_FILE");
    if (!path || std::filesystem::exists(*path)) return;  // the first failure counts
    if (failure.time_ms == 0) failure.time_ms = now_ms();
    // Whole or not at all, but not flushed to disk: the launcher reads it now, and a busy disk takes seconds for that.
    const std::string draft = *path + ".new";
    std::ofstream(draft, std::ios::binary) << json_text(failure);
    std::filesystem::rename(draft, *path);
  } catch (...) {
    // Nothing more can be reported: the exit status still says that the rank failed.
  }
}

int report_failure(const std::exception& error) noexcept {
  const int status = status_of(error);
  report_failure(message_of(error), status, dynamic_cast<const RunError*>(&error) != nullptr);
  return status;
}

void report_failure(const std::string& message, int status, bool is_finding) noexcept {
  const int rank = rank_for_messages();
  if (rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  record_failure(
      {.rank = rank, .host = host_name(), .message = message, .exit_status = status, .is_finding = is_finding});
  std::fprintf(stderr, "tessera: %s %s\n", coloured("error:", Colour::kRed).c_str(), message.c_str());
}

std::optional<Failure> read_failure(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  Json record = {{"is_finding", false}};  // older records lack it
  record.update(parse_json(read_file(path), path.string()));
  return record.get<Failure>();
}

int status_of(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  return static_cast<int>(own != nullptr ? own->status() : ExitStatus::kFailure);
}

std::string message_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return std::string(trim(torch_error != nullptr ? torch_error->what_without_backtrace() : error.what()));
}

}  // namespace tessera
