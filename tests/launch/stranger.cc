// A stranger on the network: everything that somebody who can reach a port may try. Started by stranger_test.cc, as
// another user where that is possible.
//   stranger HOST PORT SECONDS
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in target;

int connect_once() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&target), sizeof target) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

bool is_readable(int fd, int milliseconds) {
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, milliseconds) > 0;
}

// What the other end says until it closes or falls silent.
std::string hear(int fd) {
  std::string heard;
  char buffer[4096];
  while (is_readable(fd, 200)) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    heard.append(buffer, static_cast<std::size_t>(count));
  }
  return heard;
}

struct Tally {
  long connections = 0, refused = 0;
  std::size_t longest_word = 0;
};

void say(const std::string& text, Tally& tally) {
  const int fd = connect_once();
  if (fd < 0) {
    ++tally.refused;
    return;
  }
  ++tally.connections;
  (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  tally.longest_word = std::max(tally.longest_word, hear(fd).size());
  close(fd);
}

// What a rank of the former protocol said, and what TCPStore's clients say.
const std::vector<std::string> kGuesses = {
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(200, 'x'),
    R"({"rank":1,"world_size":2,"host":"h","pid":5,"job_id":"","version":"v1","settings":{},"patience_ms":0,"node_rank":-1})"
    "\n",
    std::string("\0\xa5\x5a\x3c\x1e", 5) + std::string(100, '\0'),
    std::string(64, '\xff'),
};

void flood(int num_connections, Tally& tally) {
  std::vector<int> held;
  for (int i = 0; i < num_connections; ++i) {
    const int fd = connect_once();
    fd < 0 ? ++tally.refused : ++tally.connections;
    if (fd >= 0) held.push_back(fd);
  }
  for (const int fd : held) close(fd);
}

void send_giant_line(Tally& tally) {
  const int fd = connect_once();
  if (fd < 0) {
    ++tally.refused;
    return;
  }
  ++tally.connections;
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 300; ++i) {
    if (send(fd, part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
  }
  close(fd);
}

}  // namespace

int main(int, char** argv) {
  target.sin_family = AF_INET;
  inet_pton(AF_INET, argv[1], &target.sin_addr);
  target.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
  rlimit limit{4096, 4096};
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto until = Clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  Tally tally;
  std::string recorded;
  if (const int fd = connect_once(); fd >= 0) {
    recorded = hear(fd);  // a challenge, sent back as an answer
    close(fd);
  }
  flood(2000, tally);
  send_giant_line(tally);
  while (Clock::now() < until) {
    for (const std::string& guess : kGuesses) say(guess, tally);
    say(recorded + recorded, tally);
    flood(200, tally);
    usleep(50'000);
  }
  std::printf("as user %u: %ld connections, %ld refused, longest word %zu bytes\n", geteuid(), tally.connections,
              tally.refused, tally.longest_word);
}
