#include "comm/meeting/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::size_t kMostKeyBytes = 4096;
constexpr std::uint64_t kMostKeys = 4096;
constexpr std::size_t kMostAppendedBytes = 1 << 20;
constexpr std::uint64_t kLongestWaitMs = 7 * 24 * 3'600'000ULL;

std::string key_in(PacketReader& packet) {
  std::string key = packet.text();
  if (key.empty() || key.size() > kMostKeyBytes) throw RefusedRequest("a key that is empty or too long");
  return key;
}

std::vector<std::string> keys_in(PacketReader& packet) {
  std::vector<std::string> keys;
  const std::uint64_t count = packet.number();
  if (count > kMostKeys) throw RefusedRequest("too many keys");
  for (std::uint64_t left = count; left > 0; --left) keys.push_back(key_in(packet));
  return keys;
}

std::string text_of(const MeetingStore::Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string fields(const std::string& key, const MeetingStore::Bytes& value) {
  return PacketWriter().text(key).text(text_of(value)).bytes();
}

std::string fields(const std::vector<std::string>& keys) {
  PacketWriter packet;
  packet.number(keys.size());
  for (const std::string& key : keys) packet.text(key);
  return packet.bytes();
}

}  // namespace

std::string make_reply(std::uint64_t request, ReplyCode code, const std::vector<std::string>& values) {
  PacketWriter packet(MessageType::kReply);
  packet.number(request).number(static_cast<std::uint64_t>(code)).number(values.size());
  for (const std::string& value : values) packet.text(value);
  return packet.bytes();
}

void StoreServer::take(std::uint64_t peer, MessageType type, PacketReader& packet) {
  const std::uint64_t request = packet.number();
  try {
    serve(peer, request, type, packet);
  } catch (const RefusedRequest& refusal) {
    reply(peer, request, ReplyCode::kRefused, {refusal.what()});
  }
}

void StoreServer::serve(std::uint64_t peer, std::uint64_t request, MessageType type, PacketReader& packet) {
  std::vector<std::string> answer;
  switch (type) {
    case MessageType::kSet: {
      const std::string key = key_in(packet);
      values_[key] = packet.text();
      break;
    }
    case MessageType::kAppend: {
      const std::string key = key_in(packet), more = packet.text();
      const std::size_t size = values_.contains(key) ? values_.at(key).size() : 0;
      if (size + more.size() > kMostAppendedBytes) throw RefusedRequest("a value too long");
      values_[key] += more;
      break;
    }
    case MessageType::kAdd: {
      const std::string key = key_in(packet);
      answer = {std::to_string(add(key, static_cast<std::int64_t>(packet.number())))};
      break;
    }
    case MessageType::kCompareSet: {
      const std::string key = key_in(packet), expected = packet.text(), desired = packet.text();
      answer = {compare_set(key, expected, desired)};
      break;
    }
    case MessageType::kDelete:
      answer = {values_.erase(key_in(packet)) != 0 ? "1" : "0"};
      break;
    case MessageType::kCheck:
      answer = {has_all(keys_in(packet)) ? "1" : "0"};
      break;
    case MessageType::kCount:
      answer = {std::to_string(values_.size())};
      break;
    case MessageType::kGet: {
      const std::chrono::milliseconds patience(std::min(packet.number(), kLongestWaitMs));
      const bool wants_values = packet.number_within(0, 1) == 1;
      std::vector<std::string> keys = keys_in(packet);
      packet.end();
      waiting_.push_back({peer, request, std::move(keys), wants_values, Clock::now() + patience});
      return serve_waiting();
    }
    default:
      throw ProtocolError("an unknown message");
  }
  packet.end();
  reply(peer, request, ReplyCode::kOk, answer);
  serve_waiting();
}

bool StoreServer::has_all(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) { return values_.contains(key); });
}

std::int64_t StoreServer::add(const std::string& key, std::int64_t amount) {
  const auto found = values_.find(key);
  const std::optional<long long> before = found == values_.end() ? 0 : parse_integer(found->second);
  std::int64_t sum = 0;
  if (!before || __builtin_add_overflow(static_cast<std::int64_t>(*before), amount, &sum)) {
    throw RefusedRequest("an addition to a value that is not a number, or too large a sum");
  }
  values_[key] = std::to_string(sum);
  return sum;
}

std::string StoreServer::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  const auto found = values_.find(key);
  if (found == values_.end() && !expected.empty()) return expected;
  if (found == values_.end() || found->second == expected) return values_[key] = desired;
  return found->second;
}

void StoreServer::serve_waiting() {
  std::erase_if(waiting_, [this](const Waiting& each) {
    if (!has_all(each.keys)) return false;
    std::vector<std::string> values;
    for (const std::string& key : each.keys) {
      if (each.wants_values) values.push_back(values_.at(key));
    }
    reply(each.peer, each.request, ReplyCode::kOk, values);
    return true;
  });
}

void StoreServer::mind_the_clock() {
  std::erase_if(waiting_, [this, now = Clock::now()](const Waiting& each) {
    if (now < each.until) return false;
    reply(each.peer, each.request, ReplyCode::kTimeout, {});
    return true;
  });
}

void StoreServer::reply(std::uint64_t peer, std::uint64_t request, ReplyCode code,
                        const std::vector<std::string>& values) {
  std::string packet = make_reply(request, code, values);
  if (packet.size() > kMostMessageBytes) packet = make_reply(request, ReplyCode::kRefused, {"the values are too long"});
  replies_.push_back({peer, std::move(packet)});
}

void StoreServer::forget(std::uint64_t peer) {
  std::erase_if(waiting_, [&](const Waiting& each) { return each.peer == peer; });
}

std::vector<StoreServer::Reply> StoreServer::take_replies() {
  return std::exchange(replies_, {});
}

MeetingStore::MeetingStore(std::shared_ptr<MeetingClient> client, std::chrono::milliseconds timeout)
    : Store(timeout), client_(std::move(client)) {}

c10::intrusive_ptr<c10d::Store> MeetingStore::clone() {
  return c10::make_intrusive<MeetingStore>(client_, timeout_);
}

void MeetingStore::set(const std::string& key, const Bytes& value) {
  client_->request(MessageType::kSet, fields(key, value));
}

MeetingStore::Bytes MeetingStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const auto values =
      client_->request(MessageType::kCompareSet, fields(key, expected) + PacketWriter().text(text_of(desired)).bytes());
  return {values->at(0).begin(), values->at(0).end()};
}

MeetingStore::Bytes MeetingStore::get(const std::string& key) {
  const std::string value = get_when_set({key}, timeout_, /*wants_values=*/true).at(0);
  return {value.begin(), value.end()};
}

std::int64_t MeetingStore::add(const std::string& key, std::int64_t amount) {
  const auto values =
      client_->request(MessageType::kAdd, PacketWriter().text(key).number(static_cast<std::uint64_t>(amount)).bytes());
  return parse_integer(values->at(0)).value_or(0);
}

bool MeetingStore::deleteKey(const std::string& key) {
  return client_->request(MessageType::kDelete, PacketWriter().text(key).bytes())->at(0) == "1";
}

bool MeetingStore::check(const std::vector<std::string>& keys) {
  return client_->request(MessageType::kCheck, fields(keys))->at(0) == "1";
}

std::int64_t MeetingStore::getNumKeys() {
  return parse_integer(client_->request(MessageType::kCount, "")->at(0)).value_or(0);
}

void MeetingStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  get_when_set(keys, timeout, /*wants_values=*/false);
}

void MeetingStore::append(const std::string& key, const Bytes& value) {
  client_->request(MessageType::kAppend, fields(key, value));
}

std::vector<std::string> MeetingStore::get_when_set(const std::vector<std::string>& keys,
                                                    std::chrono::milliseconds timeout, bool wants_values) {
  const auto limit = timeout > kNoTimeout ? timeout : timeout_;  // c10d's 0 means no limit: here everything has one
  const std::string request =
      PacketWriter().number(static_cast<std::uint64_t>(limit.count())).number(wants_values ? 1 : 0).bytes() +
      fields(keys);
  auto values = client_->request(MessageType::kGet, request, limit);
  if (!values) {
    throw Error(
        fmt::format("no rank has set {} in the run's store within {}", join(keys, ", "), format_duration(limit)),
        ExitStatus::kCollective);
  }
  return std::move(*values);
}

}  // namespace tessera
