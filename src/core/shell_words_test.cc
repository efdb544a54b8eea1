#include <gtest/gtest.h>

#include "core/error.h"
#include "core/shell_variables.h"
#include "core/text.h"

namespace tessera {
namespace {

// Every command's words as they are with these variables, separated by '|'; a word that is not known is in <>.
std::string shell_shown(const std::string& text, const ShellVariables& variables = ShellVariables()) {
  std::string all;
  for (const ShellCommand& command : split_shell(text, "t.sh")) {
    std::vector<std::string> words;
    for (const ShellWord& word : command.words) {
      for (const ShellValue& value : variables.expand(word)) {
        words.push_back(value.is_known() ? value.text : "<" + value.text + ">");
      }
    }
    all += join(words, "|") + (command.end == '&' ? " &\n" : "\n");
  }
  return all;
}

std::string shell_refusal(const std::string& text) {
  try {
    split_shell(text, "t.sh");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

ShellVariables some_variables() {
  ShellVariables variables;
  variables.set("N", {{"4"}}, "t.sh:1");
  variables.set("TWO", {{"a b"}}, "t.sh:2");
  variables.set("EMPTY", {{""}}, "t.sh:3");
  variables.set("LIST", {{"x"}, {"y z"}}, "t.sh:4");
  return variables;
}

TEST(ShellSplit, CutsCommandsAtLinesSemicolonsAndPipes) {
  EXPECT_EQ(shell_shown("a b; c && d || e | f\ng & h # no\n"), "a|b\nc &\nd\ne\nf\ng &\nh\n");
}

TEST(ShellSplit, QuotesAndEscapesKeepAWordTogether) {
  EXPECT_EQ(shell_shown(R"(a 'b c' "d 'e' \"f\"" g\ h i'j'"k" '')"), "a|b c|d 'e' \"f\"|g h|ijk|\n");
}

TEST(ShellSplit, ABackslashContinuesALine) {
  EXPECT_EQ(shell_shown("a --b \\\n  c\\\nd\n"), "a|--b|cd\n");
  EXPECT_EQ(shell_shown("a \\\r\n  b\r\nc\r\n"), "a|b\nc\n");
}

TEST(ShellSplit, CommentsBeginOnlyAtWords) {
  EXPECT_EQ(shell_shown("# all\na#b c #d\n"), "a#b|c\n");
}

TEST(ShellSplit, RedirectionsAndHereDocumentsAreNoWords) {
  EXPECT_EQ(shell_shown("a > x.log 2>&1 b\nc &> y &\nd <<EOF\npython no.py\nEOF\ne <<< \"text\"\n"),
            "a|b\nc &\nd\ne\n");
}

TEST(ShellSplit, CountsTheLinesOfCommands) {
  const std::vector<ShellCommand> commands = split_shell("\na \\\n b\n'c\nd'\ne", "t.sh");
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].words[0].line, 2U);
  EXPECT_EQ(commands[1].words[0].line, 4U);
  EXPECT_EQ(commands[2].words[0].line, 6U);
}

TEST(ShellSplit, RefusesWhatIsNotClosedByTheLineThatOpensIt) {
  EXPECT_EQ(shell_refusal("a\necho \"b\nc\n"), "t.sh:2: the quote \" that opens here is not closed");
  EXPECT_EQ(shell_refusal("echo 'b"), "t.sh:1: the quote ' that opens here is not closed");
  EXPECT_EQ(shell_refusal("echo $(b"), "t.sh:1: the ( that opens here is not closed");
  EXPECT_EQ(shell_refusal("echo ${b"), "t.sh:1: the { that opens here is not closed");
  EXPECT_EQ(shell_refusal("a <<EOF\nb\n"), "t.sh:3: the here-document 'EOF' has no end");
}

TEST(ShellVariables, UnquotedValuesBecomeSeveralWordsAndEmptyOnesNone) {
  EXPECT_EQ(shell_shown("p $TWO \"$TWO\" x${N}y $EMPTY \"$EMPTY\"", some_variables()), "p|a|b|a b|x4y|\n");
}

TEST(ShellVariables, ArraysBecomeTheirElements) {
  EXPECT_EQ(shell_shown("p \"${LIST[@]}\" $LIST", some_variables()), "p|x|y z|x\n");
}

TEST(ShellVariables, FallbacksServeForUnsetAndEmptyNames) {
  EXPECT_EQ(shell_shown("p ${NONE:-7} ${EMPTY:-\"b c\"} ${N:-9} ${NONE:-$N}", some_variables()), "p|7|b|c|4|4\n");
}

TEST(ShellVariables, ArithmeticOfKnownNumbersIsComputed) {
  EXPECT_EQ(shell_shown("p $((N * 2)) $(($N*(1+2))) $((N/0)) $((NONE + 1))", some_variables()),
            "p|8|12|<$((N/0))>|<$((NONE + 1))>\n");
}

TEST(ShellVariables, WhatOnlyAShellKnowsStaysAsWritten) {
  EXPECT_EQ(shell_shown("p $(hostname) `date` $NONE $1 ${N%x}", some_variables()),
            "p|<$(hostname)>|<`date`>|<$NONE>|<$1>|<${N%x}>\n");
}

TEST(ShellVariables, AValueThatIsKnownInPartIsCutAtItsOwnBlanksOnly) {
  ShellVariables variables;
  variables.set("L", {variables.expand_whole(split_quoted("torchrun --id $(date +%s) --nodes 2", "t.sh"))}, "t.sh:1");
  EXPECT_EQ(shell_shown("$L train.py", variables), "torchrun|--id|<$(date +%s)>|--nodes|2|train.py\n");
}

TEST(ShellVariables, DeepNestingEndsWithAMessage) {
  std::string arrays, fallbacks;
  for (int i = 0; i < 100'000; ++i) {
    arrays += "A=(";
    fallbacks += "${A:-";
  }
  EXPECT_EQ(shell_refusal(arrays), "t.sh:1: '(' is not understood within an array");
  EXPECT_EQ(shell_refusal(fallbacks), "t.sh:1: the { that opens here is not closed");
  const ShellCommand closed = split_shell(fallbacks + std::string(100'000, '}'), "t.sh").at(0);
  EXPECT_EQ(ShellVariables().expand(closed.words[0]).at(0).unknown, "its fallback is too long");
}

TEST(ShellVariables, RefusesValuesThatGrowWithoutBound) {
  ShellVariables variables;
  variables.set("A", {{std::string(40000, 'x')}}, "t.sh:1");
  EXPECT_THROW(variables.expand_whole(split_quoted("$A$A", "t.sh")), UsageError);
}

TEST(ShellArithmetic, RefusesWhatIsNoNumber) {
  const auto no_names = [](const std::string&) -> std::optional<long long> { return std::nullopt; };
  EXPECT_EQ(shell_arithmetic("2 + 3 * 4 - 10 / 5", no_names), 12);
  EXPECT_EQ(shell_arithmetic("17 % 5", no_names), 2);
  EXPECT_EQ(shell_arithmetic("1 +", no_names), std::nullopt);
  EXPECT_EQ(shell_arithmetic("1 2", no_names), std::nullopt);
  EXPECT_EQ(shell_arithmetic("999999999999 * 999999999999", no_names), std::nullopt);
  EXPECT_EQ(shell_arithmetic(std::string(1000, '('), no_names), std::nullopt);
}

}  // namespace
}  // namespace tessera
