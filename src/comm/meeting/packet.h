// A message's fields, packed one after another: numbers of eight bytes, texts with their length before them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

// What one end says to the other. The first field of every message.
enum class Word : std::uint8_t {
  // From a guest. All but the first and the last three carry a number that the reply repeats.
  kJoin = 1,
  kSet,
  kGet,
  kAdd,
  kCompareSet,
  kDelete,
  kCheck,
  kCount,
  kAppend,
  kGoodbye,
  kAlarm,
  kFlight,
  kBeat,  // answered by the same
  // From the meeting place.
  kWelcome = 64,
  kRefusal,
  kReply,
  kInquiry,
  kFinding,
};

enum class ReplyCode : std::uint8_t { kOk = 0, kTimeout = 1, kRefused = 2 };

// A request that cannot be served: the guest is told why, and stays.
class RefusedRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The other end broke the protocol: its connection is closed.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class PacketWriter {
 public:
  PacketWriter() = default;  // fields alone
  explicit PacketWriter(Word word) { bytes_.push_back(static_cast<char>(word)); }
  PacketWriter& number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
    return *this;
  }
  PacketWriter& text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every read is checked against what is left.
class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes) : left_(bytes) {}
  Word word() { return static_cast<Word>(take(1).front()); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char byte : take(8)) {
      value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
      shift += 8;
    }
    return value;
  }
  // Throws ProtocolError unless low <= number <= high.
  std::int64_t number_within(std::int64_t low, std::int64_t high) {
    const auto value = static_cast<std::int64_t>(number());
    if (value < low || value > high) throw ProtocolError("a number out of its range");
    return value;
  }
  std::string text() { return std::string(take(number())); }
  void end() const {
    if (!left_.empty()) throw ProtocolError("a message with more than its fields");
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) throw ProtocolError("a message that ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

}  // namespace tessera
