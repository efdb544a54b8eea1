#include "comm/meeting/meeting_store.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

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

MeetingStore::MeetingStore(std::shared_ptr<MeetingClient> client, std::chrono::milliseconds timeout)
    : Store(timeout), client_(std::move(client)) {}

c10::intrusive_ptr<c10d::Store> MeetingStore::clone() {
  return c10::make_intrusive<MeetingStore>(client_, timeout_);
}

void MeetingStore::set(const std::string& key, const Bytes& value) {
  client_->request(Word::kSet, fields(key, value));
}

MeetingStore::Bytes MeetingStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const auto values = client_->request(Word::kCompareSet,
                                       PacketWriter().text(key).text(text_of(expected)).text(text_of(desired)).bytes());
  const std::string& value = values->at(0);
  return {value.begin(), value.end()};
}

MeetingStore::Bytes MeetingStore::get(const std::string& key) {
  const std::string value = get_when_set({key}, timeout_, /*wants_values=*/true).at(0);
  return {value.begin(), value.end()};
}

std::int64_t MeetingStore::add(const std::string& key, std::int64_t amount) {
  const auto values =
      client_->request(Word::kAdd, PacketWriter().text(key).number(static_cast<std::uint64_t>(amount)).bytes());
  return parse_integer(values->at(0)).value_or(0);
}

bool MeetingStore::deleteKey(const std::string& key) {
  return client_->request(Word::kDelete, PacketWriter().text(key).bytes())->at(0) == "1";
}

bool MeetingStore::check(const std::vector<std::string>& keys) {
  return client_->request(Word::kCheck, fields(keys))->at(0) == "1";
}

std::int64_t MeetingStore::getNumKeys() {
  return parse_integer(client_->request(Word::kCount, "")->at(0)).value_or(0);
}

void MeetingStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  get_when_set(keys, timeout, /*wants_values=*/false);
}

void MeetingStore::append(const std::string& key, const Bytes& value) {
  client_->request(Word::kAppend, fields(key, value));
}

std::vector<MeetingStore::Bytes> MeetingStore::multiGet(const std::vector<std::string>& keys) {
  std::vector<Bytes> values;
  for (const std::string& key : keys) values.push_back(get(key));
  return values;
}

void MeetingStore::multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) {
  if (keys.size() != values.size()) throw Error("multiSet needs as many values as keys");
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

std::vector<std::string> MeetingStore::get_when_set(const std::vector<std::string>& keys,
                                                    std::chrono::milliseconds timeout, bool wants_values) {
  const auto limit = timeout > kNoTimeout ? timeout : timeout_;  // c10d's 0 means no limit: here everything has one
  const std::string request =
      PacketWriter().number(static_cast<std::uint64_t>(limit.count())).number(wants_values ? 1 : 0).bytes() +
      fields(keys);
  auto values = client_->request(Word::kGet, request, limit);
  if (!values) {
    throw Error(
        fmt::format("no rank has set {} in the run's store within {}", join(keys, ", "), format_duration(limit)),
        ExitStatus::kCollective);
  }
  return std::move(*values);
}

}  // namespace tessera
