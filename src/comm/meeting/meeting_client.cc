#include "comm/meeting/meeting_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "comm/failure.h"
#include "comm/meeting/handshake.h"
#include "core/error.h"
#include "core/quantity.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGreetingTimeout{3000};
constexpr milliseconds kServerProofTimeout{10'000};  // its thread shares the cores with the ranks
// A connection that is cut off or not answered may be lost in a flood of strangers' connections: try again, but not for
// long, since a wrong secret or port looks the same.
constexpr milliseconds kRetryFor{9000};
constexpr milliseconds kRetryPause{100};
// How long a reply may take that needs no waiting.
constexpr milliseconds kReplyTimeout{10'000};
constexpr milliseconds kBeatInterval{1000};

std::string endpoint(const JoinOptions& options) {
  return fmt::format("{}:{}", options.host, options.port);
}

std::string foreign_port(const JoinOptions& options) {
  return fmt::format(
      "something other than a Tessera run listens on {}: choose another port (MASTER_PORT, --master_port)",
      endpoint(options));
}

std::string refused_secret(const JoinOptions& options) {
  return fmt::format(
      "{} does not accept the secret of {} {} on {}: two jobs share one port (give one of them another: MASTER_PORT, "
      "--master_port), or the {}s do not share one secret (docs/security.md)",
      endpoint(options), options.who, options.self.rank, options.self.host, options.who);
}

// A port is open, and nobody says anything.
std::string silent_holder(const JoinOptions& options, milliseconds waited) {
  return fmt::format("{} on {} has not answered for {}: it is stopped, or {}", options.holder,
                     options.host == "127.0.0.1" ? options.self.host : options.host,
                     format_duration(std::chrono::round<std::chrono::seconds>(waited)), foreign_port(options));
}

// A connection to a process that holds the job's key. Nothing if another attempt may help; `is_silent` then says
// whether nobody answered, or somebody closed the connection.
std::optional<MessageLine> shake_hands(const JoinOptions& options, Socket socket, bool* is_silent) {
  std::string challenge, proof;
  const auto greeted = socket.read_exactly(kChallengeBytes, Clock::now() + kGreetingTimeout, &challenge);
  *is_silent = greeted != Socket::Got::kClosed;
  if (greeted != Socket::Got::kAll && challenge.empty()) return std::nullopt;
  const auto server_nonce = read_challenge(challenge);
  if (!server_nonce) throw rendezvous_error(foreign_port(options));
  *is_silent = false;
  const Nonces nonces{*server_nonce, random_key()};
  if (!socket.write_all(make_answer(options.key, nonces))) return std::nullopt;
  const auto answered = socket.read_exactly(kProofBytes, Clock::now() + kServerProofTimeout, &proof);
  if (answered == Socket::Got::kClosed) return std::nullopt;
  if (answered != Socket::Got::kAll || !check_server_proof(options.key, nonces, proof)) {
    throw rendezvous_error(fmt::format(
        "what listens on {} cannot prove that it belongs to this job: choose another port (MASTER_PORT, --master_port)",
        endpoint(options)));
  }
  const SessionKeys keys = session_keys(options.key, nonces);
  watch_connection(socket.descriptor(), options.silence);
  return MessageLine(std::move(socket), keys.to_server, keys.to_client);
}

MessageLine open_line(const JoinOptions& options, Deadline deadline) {
  const auto began = Clock::now();
  std::optional<Clock::time_point> give_up;
  bool is_silent = false;
  const auto failure = [&] {
    const auto waited = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    return RunError(is_silent ? silent_holder(options, waited) : refused_secret(options), ExitStatus::kRendezvous);
  };
  // Once cut off, a place that is gone meanwhile says less than why it cut us off.
  const auto connect_again = [&] {
    try {
      return Socket::connect(options.host, options.port, give_up.value_or(deadline));
    } catch (const Error&) {
      if (!give_up) throw;
      throw failure();
    }
  };
  while (true) {
    if (auto line = shake_hands(options, connect_again(), &is_silent)) return std::move(*line);
    const auto now = Clock::now();
    if (!give_up) give_up = std::min(deadline, now + kRetryFor);
    if (now >= *give_up) throw failure();
    std::this_thread::sleep_for(kRetryPause);
  }
}

}  // namespace

MeetingClient::MeetingClient(const JoinOptions& options)
    : holder_(options.holder),
      own_name_(fmt::format("{} {} on {}", options.who, options.self.rank, options.self.host)),
      silence_(options.silence) {
  join(options);
}

void MeetingClient::join(const JoinOptions& options) {
  const Deadline deadline = Clock::now() + options.timeout;
  line_.emplace(open_line(options, deadline));
  const std::string self = json_text(to_json(options.self));
  line_->send(PacketWriter(MessageType::kJoin)
                  .text(self)
                  .number(static_cast<std::uint64_t>(std::max<std::int64_t>(1, options.timeout.count())))
                  .bytes());
  thread_ = std::thread([this] { talk(); });
  std::unique_lock lock(mutex_);
  // The answer says who is missing: leave it time to come.
  has_news_.wait_until(lock, deadline + std::chrono::seconds(5),
                       [&] { return roster_text_ || refusal_ || loss_ != Loss::kNone; });
  std::string failure;
  if (refusal_) {
    failure = *refusal_;
  } else if (!roster_text_) {
    failure = fmt::format("the connection to {} broke: the {} that serves it exited or did not answer",
                          endpoint(options), options.who == "rank" ? "launcher or rank 0" : "head node's launcher");
  }
  try {
    if (failure.empty()) {
      for (const Json& peer : parse_json(*roster_text_, "the roster")) roster_.push_back(peer_from_json(peer));
      return;
    }
  } catch (const std::exception& error) {
    failure = fmt::format("the roster from {} cannot be read: {}", endpoint(options), error.what());
  }
  is_stopping_ = true;
  lock.unlock();
  wake_up_.ring();
  thread_.join();
  if (refusal_) throw RunError(failure, ExitStatus::kRendezvous);
  throw rendezvous_error(failure);
}

MeetingClient::~MeetingClient() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_up_.ring();
  if (thread_.joinable()) thread_.join();
}

// --- the thread that talks ------------------------------------------------------------------------

void MeetingClient::talk() {
  for (bool is_last = false; !is_last;) {
    {
      const std::lock_guard lock(mutex_);
      for (std::string& message : std::exchange(outbox_, {})) line_->send(message);
      beat();
      is_last = is_stopping_;
      if (loss_ != Loss::kNone) return;
    }
    pass_messages();
  }
}

// With the mutex held. Beats are counted, not timed: a rank that was stopped itself has sent none meanwhile.
void MeetingClient::beat() {
  const auto now = Clock::now();
  if (!roster_text_ || now < next_beat_) return;
  next_beat_ = now + kBeatInterval;
  line_->send(PacketWriter(MessageType::kBeat).bytes());
  ++num_unanswered_beats_;
}

void MeetingClient::pass_messages() {
  Loss loss = line_->flush();
  std::array<pollfd, 2> fds = {{{wake_up_.fd(), POLLIN, 0},
                                {line_->fd(), static_cast<short>(line_->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0}}};
  bool is_stopping;
  {
    const std::lock_guard lock(mutex_);
    is_stopping = is_stopping_ || !outbox_.empty();
  }
  if (loss == Loss::kNone && !is_stopping) poll(fds.data(), fds.size(), 500);
  wake_up_.clear();
  const Loss received = line_->receive();
  if (loss == Loss::kNone) loss = received;
  try {
    while (const auto message = line_->next()) take(*message);
  } catch (const std::exception&) {
    loss = Loss::kEnded;  // what comes is not from the meeting place
  }
  if (loss != Loss::kNone) note_loss(loss);
}

void MeetingClient::take(const std::string& message) {
  PacketReader packet(message);
  const MessageType type = packet.type();
  const std::lock_guard lock(mutex_);
  num_unanswered_beats_ = 0;
  if (type == MessageType::kReply) {
    const auto found = pending_.find(packet.number());
    Pending reply{.is_done = true, .code = static_cast<ReplyCode>(packet.number_within(0, 2))};
    for (std::uint64_t left = packet.number(); left > 0; --left) reply.values.push_back(packet.text());
    if (found != pending_.end()) {
      // Here, not where the caller wakes up: the last answer and the end of the connection often come together.
      if (found->second.type == MessageType::kGoodbye && reply.code == ReplyCode::kOk) has_left_ = true;
      found->second = std::move(reply);
    }
  } else if (type == MessageType::kInquiry) {
    news_.is_inquiry = true;
  } else if (type == MessageType::kFinding) {
    news_.finding = Finding::from_text(packet.text());
  } else if (type == MessageType::kWelcome) {
    roster_text_ = packet.text();
  } else if (type == MessageType::kRefusal) {
    refusal_ = packet.text();
  } else if (type != MessageType::kBeat) {
    throw ProtocolError("an unknown message");
  }
  packet.end();
  has_news_.notify_all();
}

void MeetingClient::note_loss(Loss loss) {
  const std::lock_guard lock(mutex_);
  loss_ = loss;
  if (!has_left_) news_.lost = lost_text();
  has_news_.notify_all();
}

std::string MeetingClient::lost_text() const {
  if (loss_ == Loss::kUnreachable) return lost_contact_text(holder(), own_name_, silence_);
  return fmt::format("{} is gone: its process ended, and the run's store with it", holder());
}

// --- callers --------------------------------------------------------------------------------------

std::string MeetingClient::holder() const {
  return roster_.empty() ? holder_ : fmt::format("{} on {}", holder_, roster_.front().host);
}

void MeetingClient::post(std::string message) {
  if (message.size() > kMostMessageBytes) return;  // the finding then says that this rank did not answer
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back(std::move(message));
  }
  wake_up_.ring();
}

std::optional<std::vector<std::string>> MeetingClient::request(MessageType type, const std::string& fields,
                                                               milliseconds patience) {
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_request_;
  std::string message = PacketWriter(type).number(id).bytes() + fields;
  if (message.size() > kMostMessageBytes) {
    throw Error(fmt::format("a value of {} bytes is too large for the store: at most {} are allowed", fields.size(),
                            kMostMessageBytes));
  }
  pending_[id] = {.type = type};
  outbox_.push_back(std::move(message));
  wake_up_.ring();
  const auto limit = patience + kReplyTimeout;
  has_news_.wait_for(lock, limit, [&] { return pending_[id].is_done || loss_ != Loss::kNone; });
  const Pending reply = std::move(pending_[id]);
  pending_.erase(id);
  if (reply.is_done && reply.code == ReplyCode::kTimeout) return std::nullopt;
  if (reply.is_done && reply.code == ReplyCode::kRefused) {
    throw Error(fmt::format("the run's store refuses a request: {}", reply.values.at(0)), ExitStatus::kCollective);
  }
  if (reply.is_done) return reply.values;
  if (loss_ != Loss::kNone) throw Error(lost_text(), ExitStatus::kCollective);
  throw Error(
      fmt::format("{} has not answered for {}: it is stopped, or its host hangs", holder(), format_duration(limit)),
      ExitStatus::kCollective);
}

void MeetingClient::say_goodbye() {
  request(MessageType::kGoodbye, "");
}

void MeetingClient::raise(const Alarm& alarm) {
  post(PacketWriter(MessageType::kAlarm).text(alarm.to_text()).bytes());
}

void MeetingClient::publish(const std::string& flight) {
  post(PacketWriter(MessageType::kFlight).text(flight).bytes());
}

WatchLine::News MeetingClient::news() {
  const std::lock_guard lock(mutex_);
  News news = news_;
  // The last beat may still be on its way.
  news.silence = std::max(0, num_unanswered_beats_ - 1) * kBeatInterval;
  return news;
}

}  // namespace tessera
