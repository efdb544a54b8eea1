#include "comm/meeting/guest_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/meeting/inquest.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {

GuestBook::GuestBook(int num_guests, int port, std::chrono::milliseconds timeout, std::string who,
                     std::vector<std::string> hosts)
    : num_guests_(num_guests),
      port_(port),
      timeout_(timeout),
      deadline_(Clock::now() + timeout),
      who_(std::move(who)),
      hosts_(std::move(hosts)) {}

std::string GuestBook::enter(const Guest& guest, std::chrono::milliseconds patience) {
  if (guest.world_size != num_guests_) {
    return fmt::format(
        "{} expects {} {}s, but {} are expected on port {}: WORLD_SIZE differs, or two jobs share one port",
        name_of(guest), guest.world_size, who_, num_guests_, port_);
  }
  if (const auto twin = entries_.find(guest.rank); twin != entries_.end()) {
    return fmt::format("{} {} connected twice to port {}: {} and {}; two jobs share one port, or RANK is set wrongly",
                       who_, guest.rank, port_, name_of(twin->second.guest), name_of(guest));
  }
  entries_.emplace(guest.rank, Entry{guest, Clock::now() + patience, patience});
  return {};
}

std::string GuestBook::absence(Clock::time_point now) const {
  const auto left = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.second.until < now; });
  if (now < deadline_ && left == entries_.end()) return {};
  std::vector<int> absent;
  for (int rank = 0; rank < num_guests_; ++rank) {
    if (entries_.count(rank) == 0) absent.push_back(rank);
  }
  std::vector<std::string> came;
  for (const auto& [rank, entry] : entries_) came.push_back(fmt::format("{} on {}", rank, entry.guest.host));
  const std::string who = hosts_.empty() ? fmt::format("{}{} {} of {}", who_, absent.size() == 1 ? "" : "s",
                                                       format_ranges(absent), num_guests_)
                                         : name_ranks(absent, hosts_);
  return fmt::format("{} never connected to port {} within {}; connected: {}", who, port_,
                     format_duration(left != entries_.end() ? left->second.patience : timeout_),
                     came.empty() ? "none" : join(came, ", "));
}

std::string GuestBook::departure(int rank) const {
  return fmt::format("{} exited before all {}s had connected", name_of(entries_.at(rank).guest), who_);
}

std::string GuestBook::disagreement() const {
  std::vector<std::string> differences;
  for (const auto& [rank, entry] : entries_) {
    std::string text = difference(entries_.begin()->second.guest, entry.guest);
    if (!text.empty()) differences.push_back(std::move(text));
  }
  if (differences.empty()) return {};
  constexpr std::size_t kMostNamed = 4;
  const std::size_t more = differences.size() > kMostNamed ? differences.size() - kMostNamed : 0;
  if (more > 0) differences.resize(kMostNamed);
  return fmt::format("the {}s do not match: {}{}", who_, join(differences, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

std::vector<Guest> GuestBook::roster() const {
  std::vector<Guest> guests;
  for (const auto& [rank, entry] : entries_) {
    guests.push_back(entry.guest);
    guests.back().settings.clear();
  }
  return guests;
}

std::string GuestBook::name_of(const Guest& guest) const {
  return fmt::format("{} {} on {} (process {})", who_, guest.rank, guest.host, guest.pid);
}

// The first way in which a guest differs from another, or nothing.
std::string GuestBook::difference(const Guest& a, const Guest& b) const {
  const auto tell = [&](const std::string& what, const std::string& of_a, const std::string& of_b) {
    return fmt::format("{} has {} {}, {} has {}", name_of(b), what, of_b, name_of(a), of_a);
  };
  if (a.version != b.version) return tell("version", a.version, b.version);
  for (const auto& [key, value] : a.settings) {
    const auto other = b.settings.find(key);
    if (other == b.settings.end()) return tell(key, value, "unset");
    if (other->second != value) return tell(key, value, other->second);
  }
  for (const auto& [key, value] : b.settings) {
    if (a.settings.count(key) == 0) return tell(key, "unset", value);
  }
  return {};
}

}  // namespace tessera
