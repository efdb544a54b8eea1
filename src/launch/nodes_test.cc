#include "launch/nodes.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "comm/socket.h"
#include "core/error.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

JoinOptions place_of(int node, int port, int num_nodes = 2) {
  return {.host = "127.0.0.1",
          .port = port,
          .self = {.rank = node, .world_size = num_nodes, .settings = {{"--nproc_per_node", "2"}}},
          .timeout = 2s,
          .silence = 1s};
}

int free_port() {
  return Socket::listen("127.0.0.1", 0).local_port();
}

std::string wait_for(NodeCircle& circle, const std::string& key) {
  for (int i = 0; i < 100; ++i) {
    if (auto text = circle.find(key)) return *text;
    std::this_thread::sleep_for(20ms);
  }
  return "never seen";
}

TEST(NodeCircle, ShowsEveryNodeWhatOthersHavePut) {
  const int port = free_port();
  auto other = std::async(std::launch::async, [&] {
    NodeCircle circle(place_of(1, port));
    circle.put("0/ended/1", "well");
    return wait_for(circle, "0/verdict");
  });
  {
    NodeCircle head(place_of(0, port));
    EXPECT_EQ(wait_for(head, "0/ended/1"), "well");
    EXPECT_EQ(head.loss(), std::nullopt);
    head.put("0/verdict", "go home");
  }
  EXPECT_EQ(other.get(), "go home");
}

TEST(NodeCircle, NamesTheNodeThatNeverCame) {
  try {
    NodeCircle head(place_of(0, free_port()));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kRendezvous);
    EXPECT_NE(std::string(error.what()).find("node 1"), std::string::npos) << error.what();
  }
}

// "met", or why not.
std::string outcome_of(const JoinOptions& place) {
  try {
    NodeCircle circle(place);
    return "met";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(NodeCircle, NamesTheSettingInWhichNodesDiffer) {
  const int port = free_port();
  auto other = std::async(std::launch::async, [&]() -> std::string {
    JoinOptions place = place_of(1, port);
    place.self.settings["--nproc_per_node"] = "4";
    return outcome_of(place);
  });
  EXPECT_THROW(NodeCircle head(place_of(0, port)), Error);
  EXPECT_NE(other.get().find("--nproc_per_node"), std::string::npos);
}

TEST(NodeCircle, RefusesANodeThatDoesNotShareTheSecret) {
  const int port = free_port();
  auto other = std::async(std::launch::async, [&]() -> std::string {
    JoinOptions place = place_of(1, port);
    place.key[0] = 1;
    return outcome_of(place);
  });
  EXPECT_THROW(NodeCircle head(place_of(0, port)), Error);
  EXPECT_NE(other.get().find("does not accept the secret of node "), std::string::npos);
}

TEST(NodeCircle, NamesAHostWithoutAddress) {
  EXPECT_THROW(check_host_resolves("no-such-host.invalid"), Error);
}

}  // namespace
}  // namespace tessera
