#include "comm/meeting/meeting_place.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "core/log.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHelloTimeout{5000};
// A turn of the loop takes half a second at most, unless this process is stopped or its host is.
constexpr milliseconds kPause{3000};
constexpr milliseconds kFarewell{2000};  // for the last words to those who cannot begin

// A process may hold only so many descriptors, often 1,024: make room for all peers, as far as the system allows.
void make_room_for(int num_peers) {
  constexpr rlim_t kOthers = 512;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, static_cast<rlim_t>(num_peers) + kOthers);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

MeetingPlace::MeetingPlace(MeetingOptions options)
    : options_(std::move(options)),
      acceptor_(options_.interface, options_.port, options_.key),
      port_(acceptor_.port()),
      book_(options_, port_) {
  make_room_for(options_.num_peers);
  thread_ = std::thread([this] { serve(); });
}

MeetingPlace::~MeetingPlace() {
  is_stopping_ = true;
  wake_up_.ring();
  thread_.join();
}

void MeetingPlace::serve() {
  auto last_turn = Clock::now();
  while (!is_stopping_) {
    wait_for_news();
    const auto turn = std::chrono::duration_cast<milliseconds>(Clock::now() - std::exchange(last_turn, Clock::now()));
    if (turn > kPause && report_) report_->note_own_pause(turn);
    try {
      if (phase_ == Phase::kGathering) welcome();
      for (Member& member : members_) hear(member);
      mind_the_clock();
      send_replies();
    } catch (const std::exception& error) {
      log_error("the meeting place of the {}s failed: {}", options_.who, error.what());  // out of memory
    }
    for (Member& member : members_) {
      if (member.loss == Loss::kNone) lose(member, member.line.flush());
    }
    members_.remove_if([](const Member& member) { return member.loss != Loss::kNone; });
    if (phase_ == Phase::kRefused && Clock::now() - refused_at_ > kFarewell) members_.clear();
  }
}

void MeetingPlace::wait_for_news() {
  std::vector<pollfd> fds = {{wake_up_.fd(), POLLIN, 0}};
  if (phase_ == Phase::kGathering) acceptor_.watch(&fds);
  for (const Member& member : members_) {
    fds.push_back({member.line.fd(), static_cast<short>(member.line.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const bool is_calm = phase_ == Phase::kRunning && !(report_ && report_->is_open()) && !store_.has_waiting();
  poll(fds.data(), fds.size(), is_calm ? 500 : 20);
  wake_up_.clear();
}

void MeetingPlace::welcome() {
  for (Acceptor::Admitted& admitted : acceptor_.admit()) {
    watch_connection(admitted.socket.descriptor(), options_.silence);
    members_.push_back(
        {.number = ++last_number_,
         .line = MessageLine(std::move(admitted.socket), admitted.keys.to_client, admitted.keys.to_server),
         .hello_until = Clock::now() + kHelloTimeout});
  }
}

void MeetingPlace::hear(Member& member) {
  if (member.loss != Loss::kNone) return;
  const Loss loss = member.line.receive();
  try {
    // What was sent before the end still counts: an alarm, a goodbye.
    while (const auto message = member.line.next()) take(member, *message);
  } catch (const std::exception& error) {
    log_debug("a {} broke the protocol: {}", options_.who, error.what());
    return lose(member, Loss::kEnded);
  }
  lose(member, loss);
}

void MeetingPlace::take(Member& member, const std::string& message) {
  PacketReader packet(message);
  const MessageType type = packet.type();
  if (phase_ == Phase::kRefused) return;
  if (phase_ == Phase::kGathering) {
    if (type != MessageType::kJoin || member.rank >= 0)
      throw ProtocolError("only a join is expected before the meeting");
    return seat(member, packet);
  }
  if (type == MessageType::kAlarm) {
    Alarm alarm = Alarm::from_text(packet.text());
    alarm.rank = member.rank;
    packet.end();
    report_->hear_alarm(alarm);
  } else if (type == MessageType::kFlight) {
    report_->hear_flight(member.rank, packet.text());
    packet.end();
  } else if (type == MessageType::kBeat) {
    packet.end();
    member.line.send(message);
  } else if (type == MessageType::kGoodbye) {
    const std::uint64_t id = packet.number();
    packet.end();
    report_->note_leave(member.rank);
    num_left_ = report_->num_left();
    member.line.send(make_reply(id, ReplyCode::kOk, {}));
  } else {
    store_.take(member.number, type, packet);
  }
}

void MeetingPlace::seat(Member& member, PacketReader& packet) {
  constexpr std::uint64_t kLongestMs = 7 * 24 * 3'600'000ULL;
  const Peer peer = peer_from_json(parse_json(packet.text(), "a peer"));
  const milliseconds patience(std::clamp<std::uint64_t>(packet.number(), 1, kLongestMs));
  packet.end();
  member.rank = peer.rank;
  if (const std::string why = book_.enter(peer, patience); !why.empty()) return refuse_all(why);
  if (!book_.is_complete()) return;
  if (const std::string why = book_.disagreement(); !why.empty()) return refuse_all(why);
  begin();
}

void MeetingPlace::lose(Member& member, Loss loss) {
  if (loss == Loss::kNone) return;
  member.loss = loss;
  store_.forget(member.number);
  if (member.rank < 0) return;
  if (phase_ == Phase::kGathering) refuse_all(book_.departure(member.rank));
  if (phase_ == Phase::kRunning) report_->note_loss(member.rank, loss);
}

void MeetingPlace::mind_the_clock() {
  const auto now = Clock::now();
  if (phase_ == Phase::kGathering) {
    for (Member& member : members_) {
      if (member.rank < 0 && now > member.hello_until) lose(member, Loss::kEnded);
    }
    if (const std::string why = book_.absence(now); !why.empty()) refuse_all(why);
  }
  store_.mind_the_clock();
  if (phase_ != Phase::kRunning || !report_->is_open()) return;
  if (!has_inquired_) tell_all(PacketWriter(MessageType::kInquiry));
  has_inquired_ = true;
  if (const auto finding = report_->conclude(now))
    tell_all(PacketWriter(MessageType::kFinding).text(finding->to_text()));
}

void MeetingPlace::begin() {
  const std::vector<Peer> roster = book_.roster();
  Json list = Json::array();
  FailureReport::Options report;
  report.loss_grace = options_.loss_grace;
  report.silence = options_.silence;
  report.holder_host = host_name();
  report.holder = options_.holder + " on " + report.holder_host;
  for (const Peer& peer : roster) {
    list.push_back(to_json(peer));
    report.hosts.push_back(peer.host);
  }
  report_.emplace(std::move(report));
  phase_ = Phase::kRunning;
  acceptor_.close();  // nobody else is expected: strangers find a closed port, and other jobs may have it
  for (Member& member : members_) {
    if (member.rank < 0) lose(member, Loss::kEnded);
  }
  tell_all(PacketWriter(MessageType::kWelcome).text(json_text(list)));
}

void MeetingPlace::refuse_all(const std::string& why) {
  if (phase_ != Phase::kGathering) return;
  phase_ = Phase::kRefused;
  refused_at_ = Clock::now();
  acceptor_.close();
  tell_all(PacketWriter(MessageType::kRefusal).text(why));
}

void MeetingPlace::tell_all(const PacketWriter& packet) {
  for (Member& member : members_) {
    if (member.rank >= 0 && member.loss == Loss::kNone) member.line.send(packet.bytes());
  }
}

void MeetingPlace::send_replies() {
  for (const StoreServer::Reply& reply : store_.take_replies()) {
    if (Member* member = find(reply.peer)) member->line.send(reply.packet);
  }
}

MeetingPlace::Member* MeetingPlace::find(std::uint64_t number) {
  const auto found = std::ranges::find(members_, number, &Member::number);
  return found == members_.end() || found->loss != Loss::kNone ? nullptr : &*found;
}

}  // namespace tessera
