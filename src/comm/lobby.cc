#include "comm/lobby.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/failure.h"
#include "comm/socket.h"
#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/version.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The server speaks first, so that a guest knows at once whether it has reached the right place.
const std::string kGreeting = "TESSERA LOBBY 1";
constexpr milliseconds kGreetingTimeout{3000};

Json to_json(const Guest& guest) {
  return {{"rank", guest.rank},         {"world_size", guest.world_size}, {"host", guest.host},
          {"pid", guest.pid},           {"job_id", guest.job_id},         {"version", guest.version},
          {"settings", guest.settings}, {"node_rank", guest.node_rank}};
}

Guest guest_from_json(const Json& json) {
  return {.rank = json.at("rank"),
          .world_size = json.at("world_size"),
          .host = json.at("host"),
          .pid = json.at("pid"),
          .job_id = json.at("job_id"),
          .version = json.at("version"),
          .settings = json.at("settings").get<std::map<std::string, std::string>>(),
          .node_rank = json.at("node_rank")};
}

std::string name_of(const Guest& guest, const std::string& who) {
  return fmt::format("{} {} on {} (process {})", who, guest.rank, guest.host, guest.pid);
}

// The first way in which a guest differs from another, or nothing.
std::string difference(const Guest& a, const Guest& b, const std::string& who) {
  const auto tell = [&](const std::string& what, const std::string& of_a, const std::string& of_b) {
    return fmt::format("{} has {} {}, {} has {}", name_of(b, who), what, of_b, name_of(a, who), of_a);
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

}  // namespace

std::string version_text() {
  return fmt::format("tessera {}, torch {}", kVersion, TORCH_VERSION);
}

struct LobbyServer::Impl {
  struct Visitor {
    Socket socket;
    Deadline until;  // for its hello
  };
  struct Seated {
    Guest guest;
    Socket socket;
    Deadline until;  // it waits no longer, so the others need not either
    milliseconds patience;
  };

  Impl(int wanted_port, int guests, milliseconds timeout, std::string who_, std::string job)
      : listener(Socket::listen(wanted_port)),
        port(listener.local_port()),
        num_guests(guests),
        patience(timeout),
        deadline(steady_clock::now() + timeout),
        who(std::move(who_)),
        job_id(std::move(job)) {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store = c10::make_intrusive<c10d::TCPStore>("localhost", options);
    thread = std::thread([this] { serve(); });
  }

  ~Impl() {
    stopping = true;
    thread.join();
  }

  void serve() {
    std::string why;
    try {
      while (why.empty() && static_cast<int>(seated.size()) < num_guests && !stopping) {
        why = absent_text();
        if (!why.empty()) break;
        // Accept everyone who is at the door, so that none of a thousand guests waits long for the greeting.
        auto patience_at_door = milliseconds(20);
        while (auto visitor = listener.accept(steady_clock::now() + patience_at_door)) {
          visitor->write_line(kGreeting);
          visitors.push_back({std::move(*visitor), steady_clock::now() + std::chrono::seconds(5)});
          patience_at_door = milliseconds(0);
        }
        why = hear_visitors();
        if (why.empty()) why = departed_text();
      }
      if (why.empty() && !stopping) why = disagreement_text();
    } catch (const std::exception& error) {
      why = message_of(error);
    }
    listener = Socket();  // no more guests are expected: free the port for others
    if (!stopping) answer_all(why);
  }

  // Reads the hellos that have arrived; returns the reason if the meeting must fail.
  std::string hear_visitors() {
    for (auto visitor = visitors.begin(); visitor != visitors.end();) {
      const auto line = visitor->socket.read_line(steady_clock::now());
      if (!line && steady_clock::now() < visitor->until) {
        ++visitor;
        continue;
      }
      const std::string why = line ? seat(*line, visitor->socket) : "";
      visitor = visitors.erase(visitor);
      if (!why.empty()) return why;
    }
    return {};
  }

  std::string seat(const std::string& line, Socket& socket) {
    Guest guest;
    milliseconds its_patience{};
    try {
      const Json hello = parse_json(line, "hello");
      guest = guest_from_json(hello);
      its_patience = milliseconds(hello.at("patience_ms").get<std::int64_t>());
    } catch (const std::exception&) {
      return {};  // not a rank of any job: perhaps a port scanner
    }
    if (!job_id.empty() && guest.job_id != job_id) {
      turn_away(socket, fmt::format("port {} serves job '{}', but {} belongs to job '{}': two jobs share one port; "
                                    "give one of them another (MASTER_PORT, --master_port)",
                                    port, job_id, name_of(guest, who), guest.job_id));
      return {};
    }
    std::string why;
    if (guest.world_size != num_guests) {
      why = fmt::format(
          "{} expects {} {}s, but {} are expected on port {}: WORLD_SIZE differs, or two jobs share one port",
          name_of(guest, who), guest.world_size, who, num_guests, port);
    } else if (const auto twin = seated.find(guest.rank); twin != seated.end()) {
      why = fmt::format("{} {} connected twice to port {}: {} and {}; two jobs share one port, or RANK is set wrongly",
                        who, guest.rank, port, name_of(twin->second.guest, who), name_of(guest, who));
    }
    if (!why.empty()) {
      turn_away(socket, why);
      return why;
    }
    const int rank = guest.rank;
    seated.emplace(rank, Seated{std::move(guest), std::move(socket), steady_clock::now() + its_patience, its_patience});
    return {};
  }

  static void turn_away(Socket& socket, const std::string& why) {
    socket.write_line(Json{{"ok", false}, {"why", why}}.dump());
  }

  std::string departed_text() const {
    for (const auto& [rank, seat] : seated) {
      if (seat.socket.is_closed())
        return fmt::format("{} exited before all {}s had connected", name_of(seat.guest, who), who);
    }
    return {};
  }

  // Who is missing when the time is up: the server's time, or that of the first guest that stops waiting.
  std::string absent_text() const {
    const auto now = steady_clock::now();
    const auto left = std::find_if(seated.begin(), seated.end(), [&](const auto& s) { return s.second.until < now; });
    if (now < deadline && left == seated.end()) return {};
    const milliseconds waited = left != seated.end() ? left->second.patience : patience;
    std::vector<int> absent;
    for (int rank = 0; rank < num_guests; ++rank) {
      if (seated.count(rank) == 0) absent.push_back(rank);
    }
    std::vector<std::string> came;
    for (const auto& [rank, seat] : seated) came.push_back(fmt::format("{} on {}", rank, seat.guest.host));
    return fmt::format("{}{} {} of {} never connected to port {} within {}; connected: {}", who,
                       absent.size() == 1 ? "" : "s", format_ranges(absent), num_guests, port, format_duration(waited),
                       came.empty() ? "none" : join(came, ", "));
  }

  std::string disagreement_text() const {
    std::vector<std::string> differences;
    const Guest& first = seated.begin()->second.guest;
    for (const auto& [rank, seat] : seated) {
      std::string text = difference(first, seat.guest, who);
      if (!text.empty()) differences.push_back(std::move(text));
    }
    if (differences.empty()) return {};
    constexpr std::size_t kMostNamed = 4;
    const std::size_t more = differences.size() > kMostNamed ? differences.size() - kMostNamed : 0;
    if (more > 0) differences.resize(kMostNamed);
    return fmt::format("the {}s do not match: {}{}", who, join(differences, "; "),
                       more > 0 ? fmt::format("; and {} more", more) : "");
  }

  void answer_all(const std::string& why) {
    Json answer = {{"ok", why.empty()}, {"why", why}, {"store_port", store->getPort()}};
    if (why.empty()) {
      answer["roster"] = Json::array();
      for (auto& [rank, seat] : seated) {
        seat.guest.settings.clear();  // equal on all, and long
        answer["roster"].push_back(to_json(seat.guest));
      }
    }
    for (auto& [rank, seat] : seated) seat.socket.write_line(answer.dump());
  }

  Socket listener;
  const int port;
  const int num_guests;
  const milliseconds patience;
  const Deadline deadline;
  const std::string who, job_id;
  std::list<Visitor> visitors;
  std::map<int, Seated> seated;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::atomic<bool> stopping{false};
  std::thread thread;
};

LobbyServer::LobbyServer(int port, int num_guests, milliseconds timeout, std::string who, std::string job_id)
    : impl_(std::make_unique<Impl>(port, num_guests, timeout, std::move(who), std::move(job_id))) {}
LobbyServer::~LobbyServer() = default;
int LobbyServer::port() const {
  return impl_->port;
}
c10::intrusive_ptr<c10d::Store> LobbyServer::store() const {
  return impl_->store;
}

Meeting join_lobby(const std::string& host, int port, const Guest& self, milliseconds timeout, const std::string& who) {
  const auto fail = [](const std::string& message) -> Error { return Error(message, ExitStatus::kRendezvous); };
  Deadline deadline = steady_clock::now() + timeout;
  Socket socket = Socket::connect(host, port, deadline);
  const auto greeting = socket.read_line(std::min(deadline, steady_clock::now() + kGreetingTimeout), 256);
  if (greeting != kGreeting) {
    throw fail(
        fmt::format("something other than a Tessera run listens on {}:{}: choose another port (MASTER_PORT, "
                    "--master_port)",
                    host, port));
  }
  Json hello = to_json(self);
  hello["patience_ms"] = timeout.count();
  socket.write_line(hello.dump(-1, ' ', false, Json::error_handler_t::replace));
  // The server's answer says who is missing: leave it time to answer.
  deadline += std::chrono::seconds(5);
  const auto line = socket.read_line(deadline, 1 << 26);
  if (!line) {
    throw fail(fmt::format("the connection to {}:{} broke: the {} that serves it exited or did not answer", host, port,
                           who == "rank" ? "launcher or rank 0" : "head node's launcher"));
  }
  const Json answer = parse_json(*line, "the lobby's answer");
  if (!answer.at("ok").get<bool>()) throw fail(answer.at("why"));
  Meeting meeting;
  for (const Json& guest : answer.at("roster")) meeting.roster.push_back(guest_from_json(guest));
  c10d::TCPStoreOptions options;
  options.port = answer.at("store_port");
  options.waitWorkers = false;
  options.timeout = std::max<milliseconds>(timeout, std::chrono::seconds(10));
  meeting.store = c10::make_intrusive<c10d::TCPStore>(host, options);
  return meeting;
}

}  // namespace tessera
