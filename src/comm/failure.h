// How a failing rank reports the reason to the launcher.
//
// The launcher gives each rank a file name in TESSERA_FAILURE_FILE. A rank that fails with an error writes its message
// there before it exits; a rank that was killed cannot, so the launcher goes by its exit status.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"

namespace tessera {

// Its message is about the run, not about the rank that throws it: the launcher does not put that rank before it.
class RunError : public Error {
 public:
  using Error::Error;
};

struct Failure {
  int rank = 0;
  std::string host{};
  std::string message{};
  int exit_status = 1;
  std::int64_t time_ms = 0;     // since the epoch: the earliest failure is the one to report
  bool is_consequence = false;  // this rank exited because another one had failed
  bool is_finding = false;      // the message is about the run, not about this rank

  static void visit_fields(auto& failure, const auto& visit) {
    visit("rank", failure.rank);
    visit("host", failure.host);
    visit("message", failure.message);
    visit("exit_status", failure.exit_status);
    visit("time_ms", failure.time_ms);
    visit("is_consequence", failure.is_consequence);
    visit("is_finding", failure.is_finding);
  }
};

// Does nothing if TESSERA_FAILURE_FILE is not set; never throws (it runs when everything else has failed). A time of 0
// is now.
void record_failure(Failure failure) noexcept;
// Called when a rank cannot continue: prints one clear message on standard error and writes the record for the
// launcher. Ranks above 0 wait a second first: if all ranks see the same error, rank 0 reports it, and the launcher
// then ends the others.
int report_failure(const std::exception& error) noexcept;  // returns the exit status
void report_failure(const std::string& message, int status, bool is_finding = false) noexcept;

std::optional<Failure> read_failure(const std::filesystem::path& path);

int status_of(const std::exception& error);
// An exception's message for a user: libtorch's errors lose their C++ backtrace.
std::string message_of(const std::exception& error);

}  // namespace tessera
