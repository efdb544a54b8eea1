#include <gtest/gtest.h>

#include "config/schema.h"
#include "core/text.h"

namespace tessera {
namespace {

class SchemaPrint : public testing::Test {
 protected:
  SchemaPrint() {
    schema_.bytes("minbytes", &bytes_, "smallest size", {.preset = "32M", .at_least = 1, .short_name = 'b'});
    schema_.group("Precision");
    schema_.boolean("fp16", &flag_, "half precision");
    schema_.group("");
    schema_.text("op", &op_, "how a|b are joined", {.preset = "sum", .choices = {"sum", "max"}, .environment = {"OP"}});
    schema_.group("Precision");
    schema_.text("eval_strategy", &strategy_, "", {.aliases = {"evaluation_strategy"}});
    schema_.group("");
    schema_.text("api_key", &key_, "", {.preset = "hunter1", .environment = {"API_KEY"}, .is_secret = true});
    schema_.real("a_very_long_name_that_has_a_line_of_its_own", &real_,
                 "a text that is so long that it has to go on in a second line, where it stands below its beginning");
  }

  std::int64_t bytes_;
  bool flag_;
  double real_;
  std::string op_, strategy_, key_;
  Schema schema_{"tessera comm-test", "measures collectives"};
};

TEST_F(SchemaPrint, HelpIsGroupedAndAligned) {
  EXPECT_EQ(schema_.help_text(), R"(tessera comm-test: measures collectives

usage: tessera comm-test [settings]

Settings:
  -b, --minbytes SIZE       smallest size [at least 1; default 32M]
      --op TEXT             how a|b are joined [one of sum, max; default sum; env OP]
      --api_key TEXT        [default (set); env API_KEY]
      --a_very_long_name_that_has_a_line_of_its_own X
                            a text that is so long that it has to go on in a second line, where it
                            stands below its beginning

Precision:
      --fp16 [BOOL]         half precision [default false]
      --eval_strategy TEXT  [also --evaluation_strategy]

Always:
  -h, --help                this text
      --print_config        show every setting's value and where it came from

[BOOL]: --name alone means true, --no_name false.
)");
}

TEST_F(SchemaPrint, HelpBeginsWithWhatIsUsedMost) {
  schema_.most_used({"eval_strategy", "minbytes", "none_of_ours"}, {"tessera comm-test -b 1M"});
  EXPECT_EQ(schema_.help_text(false), R"(tessera comm-test: measures collectives

usage: tessera comm-test [settings]
  tessera comm-test -b 1M

Settings that are used most:
      --eval_strategy TEXT  [also --evaluation_strategy]
  -b, --minbytes SIZE       smallest size [at least 1; default 32M]

Always:
  -h, --help                this text
      --print_config        show every setting's value and where it came from
      --help all            all 6 settings
)");
}

TEST_F(SchemaPrint, HelpStaysWithinAHundredColumns) {
  std::vector<std::string> choices;
  for (int i = 0; i < 30; ++i) choices.push_back("choice_" + std::to_string(i));
  std::string text, words;
  for (int i = 0; i < 50; ++i) words += "word ";
  schema_.text("many", &text, words, {.choices = choices});
  for (const std::string& line : split(schema_.help_text(), '\n')) EXPECT_LE(line.size(), 100u) << line;
}

TEST_F(SchemaPrint, HelpNamesTheWordsThatACommandTakes) {
  std::vector<std::string> words;
  schema_.positionals("PROGRAM ARGS...", &words, true);
  EXPECT_NE(schema_.help_text().find("usage: tessera comm-test [settings] PROGRAM ARGS...\n"), std::string::npos);
}

TEST_F(SchemaPrint, ConfigShowsValueAndOriginOfEverySetting) {
  schema_.read_command_line({"-b", "4096M", "--evaluation_strategy", " two\nlines"});
  schema_.read_environment(Environment({{"OP", "max"}, {"API_KEY", "hunter2"}}));
  EXPECT_EQ(schema_.config_text(),
            "minbytes                                     4G             command line\n"
            "fp16                                         false          default\n"
            "op                                           max            OP in the environment\n"
            "eval_strategy                                \" two\\nlines\"  command line\n"
            "api_key                                      (set)          API_KEY in the environment\n"
            "a_very_long_name_that_has_a_line_of_its_own  (none)         default\n");
}

TEST_F(SchemaPrint, ALongValueDoesNotPushTheOthers) {
  schema_.read_command_line({"--eval_strategy", std::string(200, 'x')});
  EXPECT_NE(schema_.config_text().find("false   default"), std::string::npos);
}

TEST_F(SchemaPrint, TheDocsHaveATableForEachGroup) {
  EXPECT_EQ(schema_.docs_table(), R"(| setting | type | default | allowed | environment | meaning |
| --- | --- | --- | --- | --- | --- |
| `--minbytes`, `-b` | size | `32M` | at least 1 |  | smallest size |
| `--op` | text | `sum` | `sum`, `max` | `OP` | how a\|b are joined |
| `--api_key` | text |  |  | `API_KEY` |  |
| `--a_very_long_name_that_has_a_line_of_its_own` | number |  |  |  | a text that is so long that it has to go on in a second line, where it stands below its beginning |

### Precision

| setting | type | default | allowed | environment | meaning |
| --- | --- | --- | --- | --- | --- |
| `--fp16` | boolean | `false` |  |  | half precision |
| `--eval_strategy`, `--evaluation_strategy` | text |  |  |  |  |
)");
}

TEST_F(SchemaPrint, SecretsAreInNoPrintOut) {
  schema_.read_command_line({"--api_key", "hunter2"});
  for (const std::string& text :
       {schema_.help_text(), schema_.config_text(), schema_.docs_table(), schema_.to_json().dump()}) {
    EXPECT_EQ(text.find("hunter"), std::string::npos) << text;
  }
  EXPECT_EQ(key_, "hunter2");
}

}  // namespace
}  // namespace tessera
