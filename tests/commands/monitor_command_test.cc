// `tessera monitor` around real programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "monitor/memory_logs.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class MonitorCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_shell("command -v python3").status != 0) GTEST_SKIP() << "no python3 here";
  }

  // Runs `tessera monitor` in the test's folder; its streams go to the files out and err.
  int monitor(const std::string& arguments, const std::string& variables = "") {
    return run_shell(command(arguments, variables)).status;
  }
  std::string command(const std::string& arguments, const std::string& variables = "") const {
    return fmt::format("cd {} && env -u SLURM_JOB_ID {} {} monitor --interval 0.05 {} >out 2>err",
                       folder_.path().string(), variables, binary(), arguments);
  }
  // Starts it, waits until the program has printed a line, runs `then` (in which $pid is the monitor), and returns the
  // monitor's status.
  int monitor_and(const std::string& arguments, const std::string& then) {
    const std::string wait_for_line = "for i in $(seq 200); do [ -s out ] && break; sleep 0.05; done";
    return run_shell(fmt::format("{} & pid=$!; cd {}; {}; {}; wait $pid", exec(arguments), folder_.path().string(),
                                 wait_for_line, then))
        .status;
  }
  // Such that $! is the monitor itself, not a shell around it.
  std::string exec(const std::string& arguments) const {
    return fmt::format("(cd {} && exec {} monitor --interval 0.05 {} >out 2>err)", folder_.path().string(), binary(),
                       arguments);
  }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  CpuMemoryLog cpu_log(const std::string& job) const {
    return read_cpu_memory_log(folder_ / fmt::format("cpu_memory/{}/cpu_memory_log.txt", job));
  }
  static double peak_of(const CpuMemoryLog& log) {
    double peak = 0;
    for (const CpuMemorySample& sample : log.samples) peak = std::max(peak, sample.real_MB);
    return peak;
  }

  TestFolder folder_;
};

// The parent keeps 20 MB, a child 40 MB; a grandchild whose parent has ended 80 MB.
constexpr const char* kForks = R"py(import subprocess, sys, time
block = b"x" * (20 << 20)
keep = [sys.executable, "-c", "import sys, time; b = b'x' * (int(sys.argv[1]) << 20); time.sleep(1.5)"]
subprocess.run(["sh", "-c", '"$@" &', "sh", *keep, "80"])
child = subprocess.Popen(keep + ["40"])
print("a line of the program's own", flush=True)
child.wait()
sys.exit(7)
)py";

TEST_F(MonitorCommand, CountsChildrenAndOrphans) {
  EXPECT_EQ(monitor(fmt::format("--job j -- python3 {}", put("forks.py", kForks))), 7) << read("err");
  EXPECT_EQ(read("out"), "a line of the program's own\n");
  const CpuMemoryLog log = cpu_log("j");
  EXPECT_GE(log.samples.size(), 10u);
  EXPECT_GT(peak_of(log), 20 + 40 + 80);
  EXPECT_LT(peak_of(log), 20 + 40 + 80 + 100) << "three interpreters, and nothing of the monitor itself";
  const std::string err = read("err");
  EXPECT_TRUE(err.starts_with("tessera monitor: job j: memory logs in ./cpu_memory/j")) << err;
  // What the command prints afterwards is what the monitor has printed.
  const Ended analysis =
      run_shell(fmt::format("cd {} && {} analyze-memory j --cpu-only", folder_.path().string(), binary()));
  EXPECT_EQ(analysis.status, 0);
  const std::string section = analysis.output.substr(analysis.output.find("\nCPU Memory Usage\n"));
  EXPECT_TRUE(contains(err, section)) << err << "\nagainst\n" << section;
  EXPECT_TRUE(contains(err, "\nSampling took 0.")) << err;
}

TEST_F(MonitorCommand, GivesBackTheStatusOfTheCommand) {
  EXPECT_EQ(monitor("-- true"), 0);
  EXPECT_EQ(monitor("-- sh -c 'exit 42'"), 42);
  EXPECT_EQ(monitor("sh -c 'exit 3'"), 3) << "the two dashes may be left out";
  EXPECT_EQ(monitor("-- sh -c 'sleep 0.3; kill -KILL $$'"), 128 + 9);
  EXPECT_TRUE(contains(read("err"), "CPU Memory Usage")) << read("err");
}

TEST_F(MonitorCommand, SaysWhyACommandCannotBeStarted) {
  EXPECT_EQ(monitor("--job j -- no-such-program"), 127);
  EXPECT_EQ(read("err"), "tessera monitor: cannot run 'no-such-program': no such program in PATH\n");
  EXPECT_FALSE(fs::exists(folder_ / "cpu_memory")) << "nothing ran, nothing is left";
  put("plain", "text");
  EXPECT_EQ(monitor("-- ./plain"), 126);
  EXPECT_TRUE(contains(read("err"), "it is not executable")) << read("err");
  EXPECT_EQ(monitor("-- ./"), 126);
  put("script", "#!/no/such/interpreter\n");
  fs::permissions(folder_ / "script", fs::perms::owner_all);
  EXPECT_EQ(monitor("-- ./script"), 127);
  EXPECT_TRUE(contains(read("err"), "not the interpreter")) << read("err");
}

TEST_F(MonitorCommand, PassesInputOn) {
  run_shell(fmt::format("cd {} && echo some words | {} monitor -- cat >out 2>err", folder_.path().string(), binary()));
  EXPECT_EQ(read("out"), "some words\n");
}

constexpr const char* kHandles = R"py(import signal, sys, time
got = []
for name in ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGTERM"):
    signal.signal(getattr(signal, name), lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
while "SIGTERM" not in got:
    time.sleep(0.02)
print(" ".join(got))
sys.exit(5)
)py";

TEST_F(MonitorCommand, PassesSignalsOnOnce) {
  const std::string program = put("handles.py", kHandles);
  EXPECT_EQ(monitor_and("-- python3 " + program, "for s in USR1 HUP USR2 TERM; do kill -$s $pid; sleep 0.2; done"), 5);
  EXPECT_EQ(read("out"), "ready\nSIGUSR1 SIGHUP SIGUSR2 SIGTERM\n");
  EXPECT_TRUE(contains(read("err"), "CPU Memory Usage")) << read("err");
}

TEST_F(MonitorCommand, StaysAsLongAsAProgramThatIgnoresTheFirstSigterm) {
  const std::string program = put("stubborn.py", R"py(import signal, sys, time
def first(number, frame):
    print("not yet", flush=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGTERM, first)
print("ready", flush=True)
while True:
    time.sleep(0.02)
)py");
  EXPECT_EQ(monitor_and("--job j -- python3 " + program, "kill $pid; sleep 0.5; kill $pid"), 128 + 15);
  EXPECT_EQ(read("out"), "ready\nnot yet\n");
  EXPECT_GE(cpu_log("j").samples.back().elapsed_seconds, 0.5);
}

// Nobody can write the end of a log then; the rows before it are all there.
TEST_F(MonitorCommand, WhenItIsKilledItsLogsCanStillBeRead) {
  const std::string program = put("waits.py", "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(30)\n");
  EXPECT_EQ(monitor_and("--job j -- python3 " + program, "sleep 0.5; kill -KILL $pid; kill $(cat out)"), 128 + 9);
  EXPECT_GE(cpu_log("j").samples.size(), 3u);
  EXPECT_EQ(cpu_log("j").num_unreadable, 0);
  const Ended analysis = run_tessera(fmt::format("analyze-memory j --path {} --cpu-only", folder_.path().string()));
  EXPECT_EQ(analysis.status, 0) << analysis.output;
}

TEST_F(MonitorCommand, NamesTheLogsByTheJob) {
  EXPECT_EQ(monitor("-- true", "SLURM_JOB_ID=4711"), 0);
  EXPECT_TRUE(fs::exists(folder_ / "cpu_memory/4711/cpu_memory_log.txt"));
  EXPECT_EQ(monitor("--job a/b --path deeper/still -- true", "SLURM_JOB_ID=4711"), 0);
  EXPECT_TRUE(fs::exists(folder_ / "deeper/still/cpu_memory/a_b/cpu_memory_log.txt"));
  EXPECT_EQ(monitor("--job n -- true", "SLURM_JOB_ID=4711 SLURM_NNODES=2"), 0);
  EXPECT_TRUE(fs::exists(folder_ / fmt::format("cpu_memory/n/cpu_memory_log_{}.txt", host_name())));
  EXPECT_EQ(monitor("--job second -- sh -c 'exit 4'", "LOCAL_RANK=1"), 4);
  EXPECT_FALSE(fs::exists(folder_ / "cpu_memory/second")) << "the first rank of the host samples for all";
}

// Two steps of one Slurm job on this host: neither descends from the other.
TEST_F(MonitorCommand, CountsWhatElseTheJobRunsHere) {
  const std::string other = put("other.py", "import time\nb = b'x' * (64 << 20)\ntime.sleep(20)\n");
  const Ended ended =
      run_shell(fmt::format("cd {0}; SLURM_JOB_ID=815 setsid python3 {1} & other=$!; sleep 1; SLURM_JOB_ID=815 {2} "
                            "monitor --interval 0.05 -- sleep "
                            "0.5 >out 2>err; kill $other",
                            folder_.path().string(), other, binary()));
  EXPECT_GT(peak_of(cpu_log("815")), 64) << ended.output;
}

TEST_F(MonitorCommand, LogsEveryGpuOfTheHost) {
  fs::create_symlink(TESSERA_FAKE_NVML, folder_ / "libnvidia-ml.so.1");
  const std::string library = "LD_LIBRARY_PATH=. CUDA_VISIBLE_DEVICES=1";  // which hides no GPU from the log
  EXPECT_EQ(monitor("--job g -- sleep 0.2", library), 0) << read("err");
  const GpuMemoryLog log = read_gpu_memory_log(folder_ / "gpu_memory/g/gpu_memory_log.csv");
  ASSERT_GE(log.samples.size(), 8u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(log.samples[static_cast<std::size_t>(i)].index, i);
  EXPECT_TRUE(contains(read("err"), "[gpu_memory_log - GPU 2] Peak = 201 MiB, Avg = 201.00 MiB, Mode = 201 MiB\n"))
      << read("err");
  EXPECT_EQ(monitor("--job h -- true", library + " SLURM_JOB_GPUS=1,2"), 0);
  EXPECT_EQ(read_gpu_memory_log(folder_ / "gpu_memory/h/gpu_memory_log.csv").samples[1].index, 2);
}

TEST_F(MonitorCommand, RefusesWhatItCannotDo) {
  const auto expect_refused = [&](const std::string& arguments, const std::string& part) {
    EXPECT_EQ(monitor(arguments), 2) << arguments;
    EXPECT_TRUE(contains(read("err"), part)) << arguments << "\n" << read("err");
  };
  expect_refused("", "nothing to run; the command follows the options");
  expect_refused("--", "nothing to run");
  expect_refused("--interval 0 -- true", "--interval");
  expect_refused("--interval often -- true", "--interval");
  expect_refused("--intervals 5 -- true", "--interval");
  put("file", "");
  EXPECT_EQ(monitor("--path file -- touch started"), 1);
  EXPECT_TRUE(contains(read("err"), "cannot write file/cpu_memory/")) << read("err");
  EXPECT_FALSE(fs::exists(folder_ / "started")) << "a run whose logs cannot be written is not started";
}

}  // namespace
}  // namespace tessera
