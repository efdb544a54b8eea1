// How a rank that ends badly tells why, to the one who watches it.
//
// The launcher gives each rank a file name in TESSERA_FAILURE_FILE. A rank that ends by an error writes its message
// there before it exits; a rank that was killed cannot, and then the launcher goes by the exit status.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

struct Failure {
  int rank = 0;
  std::string host{};
  std::string message{};
  int exit_status = 1;
  std::int64_t time_ms = 0;     // since the epoch: the earliest failure is the one to report
  bool is_consequence = false;  // this rank ended because another one had failed
};

// Does nothing where TESSERA_FAILURE_FILE is not set; never throws (it runs when all else has failed).
void record_failure(const Failure& failure) noexcept;
// The end of a rank that cannot go on: one clear message on standard error, and the record for the launcher. Ranks
// above 0 wait a second first: what all see is said by rank 0, and whoever started the ranks then ends the others.
void report_failure(const std::string& message, int status) noexcept;

std::optional<Failure> read_failure(const std::filesystem::path& path);

// What an exception says to a user: libtorch's errors lose their C++ backtrace.
std::string message_of(const std::exception& error);

}  // namespace tessera
