// What a user can get wrong: each is refused at once, with a message that names it, before anything starts.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>

#include "run.h"
#include "support/test_folder.h"

namespace tessera::testing {
namespace {

struct Case {
  const char* name;
  Words arguments;
  int status;
  std::vector<std::string> said;
};

// Without this, gtest shows the bytes of the object in every test's name.
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class BadInput : public ::testing::TestWithParam<Case> {};

TEST_P(BadInput, IsRefusedByName) {
  Words arguments = GetParam().arguments;
  LaunchRun run(arguments);
  EXPECT_EQ(run.wait(), GetParam().status) << run.err();
  for (const std::string& part : GetParam().said) EXPECT_TRUE(contains(run.err(), part)) << part << "\n" << run.err();
  EXPECT_EQ(run.out(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Launch, BadInput,
    ::testing::Values(Case{"NoRanks", {"--nproc_per_node", "0", "echo"}, 2, {"--nproc_per_node", "'0'", "at least 1"}},
                      Case{"NegativeRanks", {"--nproc_per_node=-2", "echo"}, 2, {"--nproc_per_node", "-2"}},
                      Case{"UnknownFlag", {"--nproc_per_nod", "2", "echo"}, 2, {"nproc_per_nod", "nproc_per_node"}},
                      Case{"NoProgram", {"--nproc_per_node", "2"}, 2, {"nothing to launch"}},
                      Case{"MissingProgram", {"no-such-program-here"}, 2, {"no-such-program-here", "PATH"}},
                      Case{"MissingFile", {"./no/such/file"}, 2, {"./no/such/file", "no such file"}},
                      Case{"NotExecutable", {"/etc/passwd"}, 2, {"/etc/passwd", "not executable"}},
                      Case{"TooManyRanks", {"--nproc_per_node", "10001", "echo"}, 2, {"at most 10000"}},
                      Case{"Module", {"-m", "package.train"}, 2, {"python -m"}},
                      Case{"Elastic", {"--nnodes", "1:4", "echo"}, 2, {"1:4", "MIN:MAX"}},
                      Case{"OtherBackend", {"--rdzv_backend", "etcd", "echo"}, 2, {"etcd", "c10d"}},
                      Case{"NoHead", {"--nnodes", "2", "--node_rank", "0", "echo"}, 2, {"--rdzv_endpoint"}},
                      Case{"NoNodeRank", {"--nnodes", "2", "--master_addr", "127.0.0.1", "echo"}, 2, {"--node_rank"}},
                      Case{"BadPort", {"--rdzv_endpoint", "127.0.0.1:http", "echo"}, 2, {"127.0.0.1:http", "port"}},
                      Case{"UnresolvableHost",
                           {"--nnodes=2", "--node_rank=1", "--rdzv_endpoint=no-such-host.invalid:2950", "echo"},
                           42,
                           {"no-such-host.invalid"}},
                      Case{
                          "UnwritableLogs", {"--log_dir", "/proc/nowhere", "echo"}, 2, {"--log_dir", "/proc/nowhere"}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(LaunchPort, InUseIsNamed) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) GTEST_SKIP() << "no IPv6 here";
  listen(fd, 1);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string port = std::to_string(ntohs(address.sin6_port));
  LaunchRun run({"--nproc_per_node", "2", "--master_port", port, "echo", "started"});
  EXPECT_EQ(run.wait(), 42);
  EXPECT_TRUE(contains(run.err(), port)) << run.err();
  EXPECT_EQ(run.out(), "");
  close(fd);
}

TEST(LaunchStarter, SaysWhenThereIsNoMpirun) {
  LaunchRun run({"--starter", "mpirun", "--nproc_per_node", "2", "/bin/echo", "started"}, {{"PATH", "/nowhere"}});
  EXPECT_EQ(run.wait(), 2);
  EXPECT_TRUE(contains(run.err(), "no mpirun of Open MPI in PATH")) << run.err();
  EXPECT_TRUE(contains(run.err(), "openmpi")) << run.err();
}

// An mpirun that fails on its own: what it said is shown.
TEST(LaunchStarter, ShowsWhatMpirunSaysWhenItCannotStart) {
  const TestFolder folder;
  std::ofstream(folder / "mpirun") << "#!/bin/sh\necho 'There are not enough slots available' >&2\nexit 1\n";
  std::filesystem::permissions(folder / "mpirun", std::filesystem::perms::owner_all);
  LaunchRun run({"--starter", "mpirun", "--nproc_per_node", "2", "/bin/echo", "started"},
                {{"PATH", folder.path().string()}});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(contains(run.err(), "not enough slots")) << run.err();
  EXPECT_TRUE(contains(run.err(), "mpirun exited with status 1 before rank 0-1 had started")) << run.err();
}

TEST(LaunchProgram, ThatCannotBeStartedIsToldByItsRank) {
  const TestFolder folder;
  std::ofstream(folder / "program") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(folder / "program", std::filesystem::perms::owner_all);
  LaunchRun run({"--starter", "fork", "--nproc_per_node", "2", (folder / "program").string()});
  EXPECT_EQ(run.wait(), 127);
  EXPECT_TRUE(contains(run.err(), "cannot start '" + (folder / "program").string() + "'")) << run.err();
  EXPECT_TRUE(contains(run.err(), "its interpreter '/no/such/interpreter' (first line) does not exist")) << run.err();
}

TEST(LaunchLogs, AFolderInPlaceOfALogIsNamed) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "rank-1.log");
  LaunchRun run({"--starter", "fork", "--nproc_per_node", "2", "--log_dir", folder.path().string(), "echo", "started"});
  EXPECT_EQ(run.wait(), 2);
  EXPECT_TRUE(contains(run.err(), "--log_dir: " + (folder / "rank-1.log").string() + " is a folder")) << run.err();
}

}  // namespace
}  // namespace tessera::testing
