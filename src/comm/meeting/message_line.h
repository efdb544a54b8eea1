// Messages over a TCP connection after the handshake: length, bytes, and a keyed hash of both with the message's
// number.
//
// Nothing here waits: the owner polls the socket. A message that was changed, replayed, left out or sent by somebody
// else does not match its hash and ends the connection. One thread uses a line.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/meeting/keyed_hash.h"
#include "comm/socket.h"

namespace tessera {

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
