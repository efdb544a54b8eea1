// Who has come to a meeting, and whether it can begin: the decisions of a MeetingPlace, without its sockets.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "comm/meeting/guest.h"

namespace tessera {

class GuestBook {
 public:
  using Clock = std::chrono::steady_clock;

  // `who` is what messages call the guests: "rank", "node". `hosts`: of each guest; empty: not known beforehand.
  GuestBook(int num_guests, int port, std::chrono::milliseconds timeout, std::string who,
            std::vector<std::string> hosts = {});

  // Enters a guest that waits for `patience`. Returns why the meeting must fail, or nothing.
  std::string enter(const Guest& guest, std::chrono::milliseconds patience);
  bool is_complete() const { return static_cast<int>(entries_.size()) == num_guests_; }

  // Why the meeting must fail now, or nothing: somebody is missing and the time is up (the server's, or that of the
  // first guest that stops waiting).
  std::string absence(Clock::time_point now) const;
  // A guest has gone before the meeting began.
  std::string departure(int rank) const;
  // The guests differ; asked when all have come.
  std::string disagreement() const;

  // In rank order, without the settings: they are equal on all, and long.
  std::vector<Guest> roster() const;

 private:
  struct Entry {
    Guest guest;
    Clock::time_point until;
    std::chrono::milliseconds patience;
  };
  std::string name_of(const Guest& guest) const;
  std::string difference(const Guest& a, const Guest& b) const;

  const int num_guests_, port_;
  const std::chrono::milliseconds timeout_;
  const Clock::time_point deadline_;
  const std::string who_;
  const std::vector<std::string> hosts_;
  std::map<int, Entry> entries_;  // by rank
};

}  // namespace tessera
