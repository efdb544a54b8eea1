// What the two ends of a connection say to each other after the handshake: the fields of a message, and the line that
// carries messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "comm/meeting/handshake.h"
#include "comm/socket.h"
#include "core/file.h"

namespace tessera {

// What one end says to the other. The first field of every message.
enum class MessageType : std::uint8_t {
  // From a peer. All but the first and the last three carry a number that the reply repeats.
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

// A request that cannot be served: the peer is told why, and stays.
class RefusedRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The other end broke the protocol: its connection is closed.
class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A message's fields, packed one after another: numbers of eight bytes, texts with their length before them.
class PacketWriter {
 public:
  PacketWriter() = default;  // fields alone
  explicit PacketWriter(MessageType type) { bytes_.push_back(static_cast<char>(type)); }
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
  MessageType type() { return static_cast<MessageType>(take(1).front()); }
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

// Wakes a thread that waits in poll(): watch fd() for reading, ring() from any thread, clear() after poll().
class WakeUp {
 public:
  WakeUp();  // throws Error
  int fd() const { return fd_.get(); }
  void ring() const;
  void clear() const;

 private:
  Fd fd_;
};

// Messages over a TCP connection after the handshake: length, bytes, and a keyed hash of both with the message's
// number.
//
// Nothing here waits: the owner polls the socket. A message that was changed, replayed, left out or sent by somebody
// else does not match its hash and ends the connection. One thread uses a line.

// A recorder's 256 entries take 80 KB, a roster of 20,000 ranks 3 MB.
inline constexpr std::size_t kMostMessageBytes = 4 << 20;

// How the other end of a connection was lost.
enum class Loss { kNone, kEnded, kUnreachable };

// The messages of one direction, each sealed with its number.
class MessageSealer {
 public:
  explicit MessageSealer(const Key& key) : key_(key) {}
  std::string seal(std::string_view message);

 private:
  Key key_;
  std::uint64_t number_ = 0;
};

class MessageOpener {
 public:
  explicit MessageOpener(const Key& key) : key_(key) {}
  void add(std::string_view bytes) { bytes_.append(bytes); }
  // The next whole message. Throws ProtocolError if it is too long or its hash does not match.
  std::optional<std::string> next();

 private:
  Key key_;
  std::uint64_t number_ = 0;
  std::string bytes_;
};

class MessageLine {
 public:
  // The socket is connected and non-blocking; the handshake is over.
  MessageLine(Socket socket, const Key& send_key, const Key& receive_key)
      : socket_(std::move(socket)), sealer_(send_key), opener_(receive_key) {}

  int fd() const { return socket_.descriptor(); }
  void send(std::string_view message) { unsent_ += sealer_.seal(message); }
  bool has_unsent() const { return !unsent_.empty(); }
  // Write and read as much as is possible now; return how the other end was lost, if it was.
  Loss flush();
  Loss receive();
  std::optional<std::string> next() { return opener_.next(); }

 private:
  Socket socket_;
  MessageSealer sealer_;
  MessageOpener opener_;
  std::string unsent_;
};

// From now on the kernel asks the other host each second whether it is there; after `silence` without an answer the
// connection fails as unreachable. A stopped process does not matter: its kernel answers.
void watch_connection(int fd, std::chrono::milliseconds silence);

}  // namespace tessera
