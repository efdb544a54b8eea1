// Errors that a user reads: what happened, where the value came from, what to do.
//
// Code throws `Error`; `main` prints one message and exits with the error's status. Callers add context on the way up,
// outermost last; all of it is shown as one sentence: "while reading ds.json: ...".
#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

// Every exit status that Tessera gives a meaning to. Scripts test these numbers: never renumber.
enum class ExitStatus : int {
  kOk = 0,
  kFailure = 1,        // anything without a status of its own
  kUsage = 2,          // a flag, a setting or a file that the user can fix
  kRendezvous = 42,    // the ranks did not find each other, or do not match
  kCollective = 43,    // a collective hung, or the ranks disagreed about it
  kNoBandwidth = 44,   // comm-test: no figure could be measured
  kWrongData = 45,     // comm-test: a collective delivered wrong data
  kLowBandwidth = 46,  // comm-test: below --min-busbw
  kOutOfMemory = 47,   // train: the message shows the plan and what would fit
  kRegression = 48,    // runs compare: slower, or more memory, than its limits allow
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitStatus status = ExitStatus::kFailure)
      : std::runtime_error(message), status_(status) {}

  ExitStatus status() const { return status_; }

  // The same error, seen from one level further out: "context: message".
  Error in_context(const std::string& context) const { return Error(context + ": " + what(), status_); }

 private:
  ExitStatus status_;
};

// What the user wrote is wrong: exit status 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message, ExitStatus::kUsage) {}
};

// A file that the user can mend: "model.bin: it ends too early".
[[noreturn]] inline void refuse_file(const std::string& origin, const std::string& mistake) {
  throw UsageError(origin + ": " + mistake);
}

// The ranks did not find each other, or are not alike: exit status 42.
inline Error rendezvous_error(const std::string& message) {
  return Error(message, ExitStatus::kRendezvous);
}

}  // namespace tessera
