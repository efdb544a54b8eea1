#include "comm/meeting/store_desk.h"

#include <algorithm>
#include <utility>

#include "comm/meeting/message_line.h"

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

}  // namespace

std::string make_reply(std::uint64_t request, ReplyCode code, const std::vector<std::string>& values) {
  PacketWriter packet(Word::kReply);
  packet.number(request).number(static_cast<std::uint64_t>(code)).number(values.size());
  for (const std::string& value : values) packet.text(value);
  return packet.bytes();
}

void StoreDesk::take(std::uint64_t guest, Word word, PacketReader& packet) {
  const std::uint64_t request = packet.number();
  try {
    serve(guest, request, word, packet);
  } catch (const RefusedRequest& refusal) {
    reply(guest, request, ReplyCode::kRefused, {refusal.what()});
  }
}

void StoreDesk::serve(std::uint64_t guest, std::uint64_t request, Word word, PacketReader& packet) {
  std::vector<std::string> answer;
  switch (word) {
    case Word::kSet: {
      const std::string key = key_in(packet);
      table_.set(key, packet.text());
      break;
    }
    case Word::kAppend: {
      const std::string key = key_in(packet);
      const std::string more = packet.text();
      if (table_.find(key).value_or("").size() + more.size() > kMostAppendedBytes)
        throw RefusedRequest("a value too long");
      table_.append(key, more);
      break;
    }
    case Word::kAdd: {
      const std::string key = key_in(packet);
      answer = {std::to_string(table_.add(key, static_cast<std::int64_t>(packet.number())))};
      break;
    }
    case Word::kCompareSet: {
      const std::string key = key_in(packet), expected = packet.text(), desired = packet.text();
      answer = {table_.compare_set(key, expected, desired)};
      break;
    }
    case Word::kDelete:
      answer = {table_.erase(key_in(packet)) ? "1" : "0"};
      break;
    case Word::kCheck:
      answer = {table_.has_all(keys_in(packet)) ? "1" : "0"};
      break;
    case Word::kCount:
      answer = {std::to_string(table_.size())};
      break;
    case Word::kGet:
      return take_get(guest, request, packet);
    default:
      throw ProtocolError("a word that is not known");
  }
  packet.end();
  reply(guest, request, ReplyCode::kOk, answer);
  serve_waiting();
}

void StoreDesk::take_get(std::uint64_t guest, std::uint64_t request, PacketReader& packet) {
  const std::chrono::milliseconds patience(std::min(packet.number(), kLongestWaitMs));
  const bool wants_values = packet.number_within(0, 1) == 1;
  std::vector<std::string> keys = keys_in(packet);
  packet.end();
  waiting_.push_back({guest, request, std::move(keys), wants_values, Clock::now() + patience});
  serve_waiting();
}

void StoreDesk::serve_waiting() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto each = next++;
    if (!table_.has_all(each->keys)) continue;
    std::vector<std::string> values;
    for (const std::string& key : each->keys) {
      if (each->wants_values) values.push_back(*table_.find(key));
    }
    reply(each->guest, each->request, ReplyCode::kOk, values);
    waiting_.erase(each);
  }
}

void StoreDesk::mind_the_clock() {
  const auto now = Clock::now();
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto each = next++;
    if (now < each->until) continue;
    reply(each->guest, each->request, ReplyCode::kTimeout, {});
    waiting_.erase(each);
  }
}

void StoreDesk::reply(std::uint64_t guest, std::uint64_t request, ReplyCode code,
                      const std::vector<std::string>& values) {
  std::string packet = make_reply(request, code, values);
  if (packet.size() > kMostMessageBytes) packet = make_reply(request, ReplyCode::kRefused, {"the values are too long"});
  replies_.push_back({guest, std::move(packet)});
}

void StoreDesk::forget(std::uint64_t guest) {
  waiting_.remove_if([&](const Waiting& each) { return each.guest == guest; });
}

std::vector<StoreDesk::Reply> StoreDesk::take_replies() {
  return std::exchange(replies_, {});
}

}  // namespace tessera
