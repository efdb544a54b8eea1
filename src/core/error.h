// Errors that a user reads: what happened, where the value came from, what to do.
//
// Code throws `Error`; `main` prints one message and ends with the error's exit status. Contexts are added on
// the way up, outermost last, and shown as one sentence: "while reading ds.json: ...".
#pragma once

#include <stdexcept>
#include <string>

namespace tessera {

// Every exit status that Tessera gives a meaning to. Scripts test these numbers: never renumber.
enum class ExitStatus : int {
  kOk = 0,
  kFailure = 1,        // anything without a status of its own
  kUsage = 2,          // a flag, a setting or a file that the user can mend
  kRendezvous = 42,    // the ranks did not find each other, or are not alike
  kCollective = 43,    // a collective hung, or the ranks disagreed about it
  kNoBandwidth = 44,   // comm-test: no figure could be had
  kWrongData = 45,     // comm-test: a collective gave wrong data
  kLowBandwidth = 46,  // comm-test: below --min-busbw
  kOutOfMemory = 47,   // train: the message has the plan and what would fit
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitStatus status = ExitStatus::kFailure)
      : std::runtime_error(message), status_(status) {}

  ExitStatus status() const { return status_; }

  // The same error, told from one level further out: "context: message".
  Error in_context(const std::string& context) const { return Error(context + ": " + what(), status_); }

 private:
  ExitStatus status_;
};

// What the user wrote is wrong: exit status 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message, ExitStatus::kUsage) {}
};

// The ranks did not find each other, or are not alike: exit status 42.
inline Error rendezvous_error(const std::string& message) {
  return Error(message, ExitStatus::kRendezvous);
}

}  // namespace tessera
