#include "train/listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "listeners/console.h"
#include "listeners/csv_history.h"
#include "support/small_run.h"

namespace tessera {
namespace {

class Thrower : public TrainListener {
 public:
  explicit Thrower(int& num_calls) : num_calls_(num_calls) {}
  std::string name() const override { return "thrower"; }
  void on_step_end(const RunMoment&) override {
    if (++num_calls_ == 3) throw 42;
    throw std::runtime_error("disk full");
  }

 private:
  int& num_calls_;
};

class Counter : public TrainListener {
 public:
  explicit Counter(int& num_calls) : num_calls_(num_calls) {}
  std::string name() const override { return "counter"; }
  void on_step_end(const RunMoment&) override { ++num_calls_; }

 private:
  int& num_calls_;
};

TEST(Listeners, OneThatThrowsIsWarnedOfOnceAndTheOthersGoOn) {
  configure_log("warn", -1);
  int num_thrown = 0, num_counted = 0;
  Listeners listeners;
  listeners.add(std::make_unique<Thrower>(num_thrown));
  listeners.add(std::make_unique<Counter>(num_counted));
  testing::internal::CaptureStderr();
  for (int step = 1; step <= 4; ++step) listeners.on_step_end({});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(num_thrown, 4);
  EXPECT_EQ(num_counted, 4);
  EXPECT_NE(said.find("thrower: disk full (the run continues"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

struct Screen {
  std::string out, progress, standing;
  Console console(int num_columns) {
    return Console([this](std::string_view text) { out += text; },
                   [this](std::string_view text, std::string_view last) {
                     progress += text;
                     standing = last;
                   },
                   num_columns);
  }
};

RunMoment moment(std::int64_t step, double seconds) {
  return {step, 93, static_cast<double>(step) / 31, 1000 + seconds};
}

TEST(ProgressShower, InAFileALineNowAndThenAndOneAtTheEnd) {
  Screen screen;
  Console console = screen.console(0);
  Listeners listeners;
  listeners.add(std::make_unique<LogLinePrinter>(console));
  listeners.add(std::make_unique<ProgressShower>(console, 30));
  listeners.on_train_begin(moment(0, 0));
  for (int step = 1; step <= 93; ++step) {
    listeners.on_step_end(moment(step, step * 1.1));
    if (step == 10) listeners.on_log(moment(step, step * 1.1), {{"loss", 1.5}, {"epoch", 0.32258}});
  }
  listeners.on_evaluation_end(moment(93, 122.4));
  listeners.on_train_end(moment(93, 200), RunEnd::kFinished, "");  // after the answers
  EXPECT_EQ(screen.out, "{'loss': 1.5, 'epoch': 0.32}\n");
  EXPECT_EQ(screen.progress,
            "28/93 [00:30<01:11, 1.10s/it]\n56/93 [01:01<00:40, 1.10s/it]\n84/93 [01:32<00:09, 1.10s/it]\n"
            "93/93 [02:02<00:00, 1.10s/it]\n");
}

TEST(ProgressShower, OnATerminalTheBarMakesRoomForALogLineAndComesBack) {
  Screen screen;
  Console console = screen.console(60);
  Listeners listeners;
  listeners.add(std::make_unique<LogLinePrinter>(console));
  listeners.add(std::make_unique<ProgressShower>(console));
  listeners.on_train_begin(moment(0, 0));
  listeners.on_step_end(moment(1, 2));
  const std::string bar = "\r\x1b[2K  1%|▎" + std::string(23, ' ') + "| 1/93 [00:02<03:04,  2.00s/it]";
  EXPECT_NE(screen.progress.find(bar), std::string::npos) << screen.progress;
  screen.progress.clear();
  listeners.on_log(moment(1, 2), {{"loss", 1.5}});
  EXPECT_EQ(screen.progress, "\r\x1b[2K" + bar);
  EXPECT_EQ(std::string(kClearLine) + screen.standing, bar);  // what log lines draw again
  listeners.on_step_end(moment(2, 2.05));                     // too soon after the last
  EXPECT_EQ(screen.progress, "\r\x1b[2K" + bar);
  listeners.on_step_end(moment(3, 4));
  EXPECT_NE(screen.progress.find("loss=1.5]"), std::string::npos) << screen.progress;
  listeners.on_train_end(moment(3, 4), RunEnd::kInterrupted, "");
  EXPECT_TRUE(screen.progress.ends_with("]\n")) << screen.progress;
  EXPECT_EQ(screen.standing, "");
}

TEST(ProgressShower, TheTimeOfAnEvaluationIsNotASteps) {
  Screen screen;
  Console console = screen.console(80);
  ProgressShower shower(console);
  shower.on_train_begin(moment(0, 0));
  shower.on_step_end(moment(1, 1));
  shower.on_evaluation_step(moment(1, 2), 1, 10);
  EXPECT_NE(screen.progress.find("| 1/10 ["), std::string::npos) << screen.progress;
  shower.on_evaluation_end(moment(1, 101));
  screen.progress.clear();
  shower.on_step_end(moment(2, 102));
  EXPECT_NE(screen.progress.find(" 1.00it/s"), std::string::npos) << screen.progress;
}

TEST(LogLinePrinter, AFullDiskIsAWarning) {
  configure_log("warn", -1);
  Console console([](std::string_view) { throw Error("cannot write to standard output: No space left on device"); },
                  [](std::string_view, std::string_view) {}, 0);
  Listeners listeners;
  listeners.add(std::make_unique<LogLinePrinter>(console));
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(listeners.on_log({}, {{"loss", 1.0}}));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("No space left on device"), std::string::npos);
}

using AppendFileTest = WithFolder;

TEST_F(AppendFileTest, ARecordThatDoesNotFitTheDiskIsTakenBack) {
  AppendFile file(folder_ / "events", AppendFile::Mode::kNew);
  file.append("first ");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{10, limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);  // so that write(2) fails with EFBIG instead
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    file.append("much too long");
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(message, "cannot write " + (folder_ / "events").string() + ": File too large");
  file.append("second");
  EXPECT_EQ(read_file(folder_ / "events"), "first second");
}

using Csv = WithFolder;

TEST_F(Csv, OneValueARow) {
  const auto file = folder_ / "metrics.csv";
  {
    CsvHistory history(file, std::nullopt);
    history.on_train_begin({});
    history.on_log({10, 93, 0.32, 5.5}, {{"loss", 1.5}, {"learning_rate", 5e-05}, {"epoch", 0.32}});
    history.on_metrics({10, 93, 0.32, 5.5}, {{"Loss/val", std::int64_t{2}}, {"note", "a, \"b\""}});
  }
  {
    CsvHistory lost(file, 10);  // killed after step 20, with its last checkpoint at step 10
    lost.on_train_begin({});
    lost.on_log({20, 93, 0.64, 9.5}, {{"loss", 9.5}, {"note", "two\nlines"}});
  }
  CsvHistory resumed(file, 10);
  resumed.on_train_begin({});
  resumed.on_summary({93, 93, 2.928, 100}, {{"avg_mem_alloc_MB", 7.0}});
  EXPECT_EQ(read_file(file),
            "step,epoch,time,metric,value\n"
            "10,0.32,5.500,train/loss,1.5\n"
            "10,0.32,5.500,train/learning_rate,5e-05\n"
            "10,0.32,5.500,Loss/val,2\n"
            "10,0.32,5.500,note,\"a, \"\"b\"\"\"\n"
            "93,2.928,100.000,avg_mem_alloc_MB,7.0\n");
  CsvHistory(file, std::nullopt).on_train_begin({});  // another run
  EXPECT_EQ(read_file(file), "step,epoch,time,metric,value\n");
}

TEST_F(Csv, AResumedRunDropsARowThatWasCut) {
  const auto file = folder_ / "metrics.csv";
  const std::string whole = "step,epoch,time,metric,value\n1,0.1,5.000,train/loss,1.5\n";
  for (const char* cut :
       {"2,0.2,6.0", "2,0.2,6.000,train/loss,1.2", "2,0.2,6.000,note,\"two\n", "2,0.2,6.000,note,\"a\nb"}) {
    write_file_atomically(file, whole + cut);
    CsvHistory resumed(file, 2);
    resumed.on_train_begin({});
    resumed.on_log({3, 93, 0.3, 7}, {{"loss", 1.25}});
    EXPECT_EQ(read_file(file), whole + "3,0.3,7.000,train/loss,1.25\n") << cut;
  }
}

}  // namespace
}  // namespace tessera
