// `tessera completion` as shells use it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core/text.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

using Words = std::set<std::string>;

Words lines_of(const std::string& text) {
  Words words;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) words.insert(line);
  }
  return words;
}

Words command_names() {
  return lines_of(run_shell(binary() + R"( help | sed -n 's/^  \([^ ]*\) .*/\1/p')").output);
}

// Every name that `tessera COMMAND --help=markdown` has for an option.
Words option_names(const std::string& command) {
  const std::string names = R"(sed -n 's/^| \(`-[^|]*\) |.*/\1/p' | tr -d '`,' | tr ' ' '\n')";
  return lines_of(run_shell(fmt::format("{} {} --help=markdown | {}", binary(), command, names)).output);
}

class CompletionCommand : public ::testing::Test {
 protected:
  std::string script(const std::string& shell) const {
    const std::string path = (folder_.path() / ("completion." + shell)).string();
    const Ended ended = run_shell(fmt::format("{} completion {} > {}", binary(), shell, path));
    EXPECT_EQ(ended.status, 0) << ended.output;
    return path;
  }

  // What bash offers when the last of these words is being typed.
  static Words in_bash(const std::string& script, const std::string& words) {
    const std::string ask = fmt::format(
        R"(bash -uc 'source {}; COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tessera
           printf "%s\n" "${{COMPREPLY[@]}}"')",
        script, words);
    const Ended ended = run_shell(ask);
    EXPECT_EQ(ended.status, 0) << ended.output;
    return lines_of(ended.output);
  }

  static bool has(const std::string& program) { return run_shell("command -v " + program).status == 0; }

  TestFolder folder_;
};

TEST_F(CompletionCommand, KnowsEveryCommandAndOption) {
  const std::string bash = script("bash");
  const Words commands = command_names();
  EXPECT_GT(commands.size(), 15u);
  EXPECT_EQ(in_bash(bash, "tessera \"\""), commands);
  for (const char* command : {"train bloom-qa", "train resnet-tinyimagenet", "launch", "comm-test", "completion"}) {
    const Words offered = in_bash(bash, fmt::format("tessera {} -", command));
    for (const std::string& option : option_names(command)) {
      EXPECT_TRUE(offered.contains(option)) << command << " " << option;
    }
    EXPECT_TRUE(offered.contains("--help") && offered.contains("--print_config")) << command;
  }
  EXPECT_GT(option_names("train bloom-qa").size(), 100u);
}

TEST_F(CompletionCommand, CompletesInBash) {
  const std::string bash = script("bash");
  const struct {
    std::string words;
    Words offered;
  } cases[] = {
      {"tessera tra", {"train"}},
      {"tessera --", {"--help", "--version"}},
      {"tessera train blo", {"bloom-qa"}},
      {"tessera train bloom-qa --stra", {"--strategy"}},
      {"tessera train bloom-qa --strategy hybrid", {"hybrid_shard", "hybrid_shard_zero2"}},
      {"tessera train bloom-qa --strategy = hybrid", {"hybrid_shard", "hybrid_shard_zero2"}},  // as bash cuts it
      {"tessera launch --nproc_per_node 2 train bloom-qa --stra", {"--strategy"}},
      {"tessera launch --log_dir train eva", {"evaluate"}},
      {"tessera runs \"\"", {"ls", "show", "compare"}},
      {"tessera runs compare --max_s", {"--max_slowdown"}},
      {"tessera completion z", {"zsh"}},
      // bash itself offers files for text and for words that are not listed; nothing for a number.
      {"tessera train bloom-qa --train_file tr", {}},
      {"tessera runs ls r", {}},
      {"tessera train bloom-qa --seed \"\"", {}},
  };
  for (const auto& each : cases) EXPECT_EQ(in_bash(bash, each.words), each.offered) << each.words;
}

TEST_F(CompletionCommand, CompletesInZsh) {
  if (!has("zsh")) GTEST_SKIP() << "there is no zsh";
  const std::string zsh = script("zsh");
  // compdef exists after compinit. The two functions that list matches are replaced by ones that print them.
  std::ofstream(folder_.path() / "ask.zsh") << "autoload -U compinit; compinit -D; source " << zsh << R"zsh(
compadd() { shift; print -l -- "$@"; }
_describe() { [[ $1 == -o ]] && shift; print -l -- "${(@)${(@P)2}%%:*}"; }
words=("$@"); CURRENT=$#; _tessera
)zsh";
  const auto offered = [&](const std::string& typed) {
    const Ended ended = run_shell(fmt::format("zsh -f {}/ask.zsh {}", folder_.path().string(), typed));
    return lines_of(ended.output);
  };
  EXPECT_EQ(offered("tessera tra"), command_names());  // zsh selects by what was typed
  EXPECT_TRUE(offered("tessera train ''").contains("bloom-qa"));
  EXPECT_TRUE(offered("tessera launch --nproc_per_node 2 train bloom-qa --st").contains("--strategy"));
  EXPECT_TRUE(offered("tessera train bloom-qa --strategy f").contains("full_shard"));
}

TEST_F(CompletionCommand, CompletesInFish) {
  if (!has("fish")) GTEST_SKIP() << "there is no fish";
  const std::string fish = script("fish");
  const auto offered = [&](const std::string& typed) {
    return lines_of(run_shell(fmt::format("HOME={} fish -c 'source {}; complete -C\"{}\" | string split -f 1 \\t'",
                                          folder_.path().string(), fish, typed))
                        .output);
  };
  EXPECT_EQ(offered("tessera tra"), Words{"train"});
  EXPECT_EQ(offered("tessera train blo"), Words{"bloom-qa"});
  EXPECT_EQ(offered("tessera launch --nproc_per_node 2 train bloom-qa --stra"), Words{"--strategy"});
  EXPECT_EQ(offered("tessera train bloom-qa --strategy hybrid"), (Words{"hybrid_shard", "hybrid_shard_zero2"}));
  EXPECT_EQ(offered("tessera train bloom-qa --strategy=full"), Words{"--strategy=full_shard"});
  EXPECT_EQ(offered("tessera runs com"), Words{"compare"});
}

TEST_F(CompletionCommand, RefusesAnotherShell) {
  const Ended unknown = run_tessera("completion tcsh");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(contains(unknown.output, "'tcsh' is not a shell that it knows; shells: bash, zsh, fish"))
      << unknown.output;
  const Ended none = run_tessera("completion");
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(contains(none.output, "expected the name of one shell: bash, zsh, fish")) << none.output;
}

}  // namespace
}  // namespace tessera
