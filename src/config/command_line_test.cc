#include <gtest/gtest.h>

#include "config/schema.h"
#include "core/error.h"

namespace tessera {
namespace {

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    schema_.bytes("minbytes", &min_bytes_, "", {.preset = "32M", .at_least = 1, .short_name = 'b'});
    schema_.integer("iters", &num_iterations_, "",
                    {.preset = "20", .at_least = 1, .at_most = 1'000'000, .short_name = 'n'});
    schema_.real("lr", &lr_, "", {.preset = "5e-5", .at_least = 0});
    schema_.boolean("fp16", &fp16_, "");
    schema_.boolean("check", &check_, "", {.preset = "true", .short_name = 'c'});
    schema_.boolean("no_shuffle", &no_shuffle_, "");
    schema_.duration("comm_timeout", &timeout_, "", {.preset = "10m"});
    schema_.text("eval_strategy", &strategy_, "",
                 {.preset = "no", .choices = {"no", "epoch"}, .aliases = {"evaluation_strategy"}});
    schema_.text("run_name", &run_name_, "");
    schema_.text("token", &token_, "", {.is_secret = true});
  }

  std::string refusal(const std::vector<std::string>& arguments) {
    try {
      schema_.read_command_line(arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }
  void read(const std::vector<std::string>& arguments) { ASSERT_EQ(refusal(arguments), "accepted"); }

  std::int64_t min_bytes_ = -1;
  int num_iterations_ = -1;
  double lr_ = -1;
  bool fp16_ = true, check_ = false, no_shuffle_ = true;
  std::chrono::milliseconds timeout_{-1};
  std::string strategy_ = "x", run_name_ = "x", token_ = "x";
  std::vector<std::string> words_ = {"x"};
  Schema schema_{"tessera comm-test", "measures collectives"};
};

TEST_F(CommandLine, WithoutArgumentsEveryMemberHasItsPreset) {
  read({});
  EXPECT_EQ(min_bytes_, 32 << 20);
  EXPECT_EQ(num_iterations_, 20);
  EXPECT_EQ(lr_, 5e-5);
  EXPECT_FALSE(fp16_);
  EXPECT_TRUE(check_);
  EXPECT_FALSE(no_shuffle_);
  EXPECT_EQ(timeout_, std::chrono::minutes(10));
  EXPECT_EQ(strategy_, "no");
  EXPECT_EQ(run_name_, "");
  EXPECT_FALSE(schema_.wants_print_config());
}

TEST_F(CommandLine, ValuesFollowTheNameOrItsEqualSignOrLetter) {
  read({"-b", "4G", "--iters", "50", "--lr=1e-3", "--run_name="});
  EXPECT_EQ(min_bytes_, std::int64_t{4} << 30);
  EXPECT_EQ(num_iterations_, 50);
  EXPECT_EQ(lr_, 1e-3);
  EXPECT_EQ(run_name_, "");
  EXPECT_TRUE(schema_.at("run_name").is_set());
  read({"-b8G", "-n=3", "--run_name", "a=b c"});
  EXPECT_EQ(min_bytes_, std::int64_t{8} << 30);
  EXPECT_EQ(num_iterations_, 3);
  EXPECT_EQ(run_name_, "a=b c");
}

TEST_F(CommandLine, BooleansAreGivenAloneWithAWordOrNegated) {
  const std::vector<std::vector<std::string>> yes = {
      {"--fp16"}, {"--fp16", "True"}, {"--fp16=1"}, {"--fp16", "on"}, {"--fp16", "--iters", "2"}};
  const std::vector<std::vector<std::string>> no = {
      {"--fp16", "False"}, {"--fp16=false"}, {"--no_fp16"}, {"--no-fp16"}, {"--fp16", "0"}};
  for (const auto& arguments : yes) {
    fp16_ = false;
    read(arguments);
    EXPECT_TRUE(fp16_) << arguments.back();
  }
  for (const auto& arguments : no) {
    fp16_ = true;
    read(arguments);
    EXPECT_FALSE(fp16_) << arguments.back();
  }
  read({"-c", "0"});  // as nccl-tests takes it
  EXPECT_FALSE(check_);
  read({"-c1"});
  EXPECT_TRUE(check_);
}

TEST_F(CommandLine, ASettingWhoseNameBeginsWithNoIsItself) {
  read({"--no_shuffle"});
  EXPECT_TRUE(no_shuffle_);
}

TEST_F(CommandLine, AWordAfterABooleanThatIsNoneIsRefused) {
  EXPECT_EQ(refusal({"--fp16", "maybe"}), "--fp16=maybe (command line): expected true or false");
  EXPECT_EQ(refusal({"--no_fp16=1"}), "--no_fp16 (command line): expected no value, found '1'");
}

TEST_F(CommandLine, UnderscoresAndHyphensInNamesAreTheSame) {
  read({"--comm-timeout", "30s", "--evaluation-strategy=epoch"});
  EXPECT_EQ(timeout_, std::chrono::seconds(30));
  EXPECT_EQ(strategy_, "epoch");
}

TEST_F(CommandLine, AMisspeltSettingIsToldTheRightOne) {
  EXPECT_EQ(refusal({"--comm_timout", "3"}),
            "unknown setting --comm_timout (command line); did you mean --comm_timeout?");
  EXPECT_EQ(refusal({"--comm-timout=3"}), "unknown setting --comm-timout (command line); did you mean --comm_timeout?");
  EXPECT_EQ(refusal({"--no_fp61"}), "unknown setting --no_fp61 (command line); did you mean --no_fp16?");
  EXPECT_EQ(refusal({"-iters", "3"}), "unknown setting -iters (command line); did you mean --iters?");
  EXPECT_EQ(refusal({"--push_to_hub=true"}),
            "unknown setting --push_to_hub (command line); see tessera comm-test --help");
  EXPECT_EQ(refusal({"-z"}), "unknown setting -z (command line); see tessera comm-test --help");
  EXPECT_EQ(refusal({"--no_iters"}).substr(0, 26), "unknown setting --no_iters");
}

TEST_F(CommandLine, AValueOutOfRangeIsRefusedWithWhatIsAllowed) {
  EXPECT_EQ(refusal({"--iters=0"}), "--iters=0 (command line): expected a whole number from 1 to 1000000");
  EXPECT_EQ(refusal({"-n", "0"}), "-n 0 (command line): expected a whole number from 1 to 1000000");
  EXPECT_EQ(refusal({"-b12x"}), "-b 12x (command line): expected a size such as 512K or 4G, at least 1");
  EXPECT_EQ(refusal({"--comm-timeout", "soon"}),
            "--comm-timeout=soon (command line): expected a duration such as 30s or 10m");
  EXPECT_EQ(refusal({"--evaluation_strategy=x"}), "--evaluation_strategy=x (command line): expected one of no, epoch");
  EXPECT_EQ(refusal({"--eval_strategy", "epochs"}),
            "--eval_strategy=epochs (command line): expected one of no, epoch; did you mean epoch?");
}

TEST_F(CommandLine, NegativeNumbersReachTheRangeCheck) {
  EXPECT_EQ(refusal({"--lr", "-1"}), "--lr=-1 (command line): expected a number of at least 0");
  EXPECT_EQ(refusal({"--lr", "-.5"}), "--lr=-.5 (command line): expected a number of at least 0");
  EXPECT_EQ(refusal({"-n", "-3"}), "-n -3 (command line): expected a whole number from 1 to 1000000");
  EXPECT_EQ(refusal({"-n-3"}), "-n -3 (command line): expected a whole number from 1 to 1000000");
}

TEST_F(CommandLine, AMissingValueIsRefused) {
  EXPECT_EQ(refusal({"--iters"}), "--iters (command line): expected a whole number from 1 to 1000000, found no value");
  EXPECT_EQ(refusal({"--run_name", "--fp16"}),
            "--run_name (command line): expected text, found no value (a value that begins with a dash is written "
            "--run_name=VALUE)");
  EXPECT_EQ(refusal({"--run_name", "-b", "4G"}).substr(0, 54),
            "--run_name (command line): expected text, found no val");
  EXPECT_EQ(refusal({"--iters="}), "--iters= (command line): expected a whole number from 1 to 1000000");
  read({"--run_name=--fp16"});
  EXPECT_EQ(run_name_, "--fp16");
  read({"--run_name", "-"});
  EXPECT_EQ(run_name_, "-");
}

TEST_F(CommandLine, OfOneNameGivenTwiceTheLastWins) {
  read({"--iters", "10", "-b", "1M", "--iters=20", "-b", "2M", "--comm_timeout", "1s", "--comm-timeout", "2s"});
  EXPECT_EQ(num_iterations_, 20);
  EXPECT_EQ(min_bytes_, 2 << 20);
  EXPECT_EQ(timeout_, std::chrono::seconds(2));
  read({"--fp16", "--no_fp16"});
  EXPECT_FALSE(fp16_);
  read({"--no-fp16", "--fp16"});
  EXPECT_TRUE(fp16_);
  // A wrong value is refused even if a later one overrides it.
  EXPECT_EQ(refusal({"--iters", "0", "--iters", "3"}).substr(0, 9), "--iters=0");
}

TEST_F(CommandLine, TwoNamesOfASettingWithDifferentValuesAreRefusedWithBoth) {
  EXPECT_EQ(refusal({"--iters", "10", "-n", "20"}),
            "--iters is given twice with different values: --iters=10 (command line) and -n 20 (command line); give "
            "one");
  EXPECT_EQ(num_iterations_, 20);
  EXPECT_EQ(refusal({"--eval_strategy=no", "--evaluation_strategy=epoch"}).substr(0, 36),
            "--eval_strategy is given twice with ");
  read({"--iters", "10", "-n", "7", "--iters", "7"});  // the last value of each name agrees
  EXPECT_EQ(num_iterations_, 7);
  read({"-b", "4G", "--minbytes=4096M"});  // one value, written in two ways
  EXPECT_EQ(min_bytes_, std::int64_t{4} << 30);
}

TEST_F(CommandLine, AnUnexpectedWordIsRefused) {
  EXPECT_EQ(refusal({"fast"}), "unexpected word 'fast' (command line); see tessera comm-test --help");
  EXPECT_EQ(refusal({"iters", "3"}), "unexpected word 'iters' (command line); did you mean --iters?");
  EXPECT_EQ(refusal({"--", "fast"}), "unexpected word 'fast' (command line); see tessera comm-test --help");
  EXPECT_EQ(refusal({""}), "unexpected word '' (command line); see tessera comm-test --help");
  EXPECT_EQ(refusal({"--"}), "accepted");
}

TEST_F(CommandLine, WordsAndSettingsMayMix) {
  schema_.positionals("FILES...", &words_);
  EXPECT_TRUE(words_.empty());
  read({"a", "--fp16", "b", "--iters", "3", "c", "--", "--d"});
  EXPECT_EQ(words_, (std::vector<std::string>{"a", "b", "c", "--d"}));
  EXPECT_TRUE(fp16_);
  read({});
  EXPECT_TRUE(words_.empty());
}

TEST_F(CommandLine, TheRestBelongsToTheProgramThatIsLaunched) {
  schema_.positionals("PROGRAM ARGS...", &words_, true);
  const std::vector<std::string> rest = {"train", "--iters", "7", "--comm-timout=1", "-h", "--", "-b"};
  std::vector<std::string> arguments = {"--iters=3", "--fp16"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  read(arguments);
  EXPECT_EQ(words_, rest);
  EXPECT_EQ(num_iterations_, 3);
  read({"--iters=3", "--", "--odd", "x"});
  EXPECT_EQ(words_, (std::vector<std::string>{"--odd", "x"}));
  EXPECT_EQ(refusal({"--itres", "3", "train"}), "unknown setting --itres (command line); did you mean --iters?");
}

TEST_F(CommandLine, HelpIsPrintedAndEndsTheReading) {
  for (const char* word : {"-h", "--help"}) {
    testing::internal::CaptureStdout();
    EXPECT_FALSE(schema_.read_command_line({"--iters=7", word}));
    EXPECT_EQ(testing::internal::GetCapturedStdout(), schema_.help_text());
    EXPECT_EQ(num_iterations_, 20);
  }
}

TEST_F(CommandLine, HelpIsShortUnlessAllIsAskedFor) {
  schema_.most_used({"iters", "not_declared_here"}, {"tessera comm-test --iters 5"});
  const auto printed = [&](const std::vector<std::string>& words) {
    testing::internal::CaptureStdout();
    EXPECT_FALSE(schema_.read_command_line(words));
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed({"--help"}), schema_.help_text(false));
  EXPECT_EQ(printed({"--help", "all"}), schema_.help_text(true));
  EXPECT_EQ(printed({"--iters", "3", "-h", "all"}), schema_.help_text(true));
}

TEST_F(CommandLine, HelpAsMarkdownIsTheTableOfTheDocs) {
  testing::internal::CaptureStdout();
  EXPECT_FALSE(schema_.read_command_line({"--help=markdown"}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), schema_.docs_table());
}

TEST_F(CommandLine, PrintConfigIsOnlyNoted) {
  read({"--print-config", "--iters", "7"});
  EXPECT_TRUE(schema_.wants_print_config());
  EXPECT_EQ(num_iterations_, 7);
}

TEST_F(CommandLine, ASecretIsInNoMessage) {
  schema_.text("key", &token_, "", {.choices = {"a", "b"}, .is_secret = true});
  schema_.bytes("hidden", &min_bytes_, "", {.is_secret = true});
  schema_.text("secret_word", &token_, "", {.aliases = {"word"}, .is_secret = true});
  EXPECT_EQ(refusal({"--word", "hunter2", "--secret_word", "hunter3"}),
            "--word is given twice with different values: --word=(secret) (command line) and --secret_word=(secret) "
            "(command line); give one");
  EXPECT_EQ(refusal({"--key", "hunter2"}), "--key=(secret) (command line): expected one of a, b");
  EXPECT_EQ(refusal({"--hidden", "hunter2"}), "--hidden=(secret) (command line): expected a size such as 512K or 4G");
  EXPECT_EQ(refusal({"--tokne=hunter2"}), "unknown setting --tokne (command line); did you mean --token?");
}

}  // namespace
}  // namespace tessera
