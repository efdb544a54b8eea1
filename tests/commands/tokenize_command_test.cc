// `tessera tokenize`, against the ids that the original gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kTokenizerFolder = TESSERA_TEST_DATA_FOLDER "/tokenizer";

Ended tokenize(const std::string& arguments, const std::string& input) {
  const TestFolder folder;
  const auto file = folder / "input";
  write_file_atomically(file, input);
  return run_shell(fmt::format("{} tokenize --tokenizer {}/bloom_like.json {} < {}", binary(), kTokenizerFolder,
                               arguments, file.string()));
}

TEST(TokenizeCommand, GivesAnArrayOfIdsForEachLineAndTheTextBack) {
  const Json sample = read_json_file(kTokenizerFolder + "/squad_sample.json");
  std::string texts, ids;
  for (const Json& item : sample) {
    texts += item.at("text").dump() + "\n";
    ids += item.at("bloom_like").dump() + "\n";
  }
  const Ended encoded = tokenize("", texts);
  ASSERT_EQ(encoded.status, 0) << encoded.output;
  const auto lines = split(std::string(trim(encoded.output)), '\n');
  ASSERT_EQ(lines.size(), sample.size());
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(parse_json(lines[i], "line"), sample[i].at("bloom_like"));

  const Ended decoded = tokenize("--decode", ids);
  ASSERT_EQ(decoded.status, 0) << decoded.output;
  EXPECT_EQ(decoded.output, texts);
}

TEST(TokenizeCommand, SpecialTokensAreShownUnlessToldOtherwise) {
  EXPECT_EQ(tokenize("", "\"<s></s>\"\n").output, "[1, 2]\n");
  EXPECT_EQ(tokenize("--decode", "[1, 2]\n").output, "\"<s></s>\"\n");
  EXPECT_EQ(tokenize("--decode --no_special_tokens", "[1, 2]\n").output, "\"\"\n");
  EXPECT_EQ(tokenize("", "\"\"\n").output, "[]\n");
}

TEST(TokenizeCommand, ABadLineIsRefusedWithItsNumber) {
  const auto refusal = [](const std::string& arguments, const std::string& input) {
    const Ended ended = tokenize(arguments, input);
    EXPECT_EQ(ended.status, 2);
    return ended.output;
  };
  EXPECT_NE(refusal("", "\"a\"\n\"b\"\nc\n").find("standard input, line 3: "), std::string::npos);
  EXPECT_NE(refusal("", "\"a\"\n[1]\n").find("standard input, line 2: expected one JSON string"), std::string::npos);
  EXPECT_NE(refusal("", "\"a\"\n\n").find("standard input, line 2: "), std::string::npos);
  EXPECT_NE(refusal("--decode", "[1]\n[\"x\"]\n").find("line 2: expected token ids, found \"x\""), std::string::npos);
  EXPECT_NE(refusal("--decode", "[-1]\n").find("line 1: expected token ids, found -1"), std::string::npos);
  // Hugging Face's decode leaves unknown ids out, so that a wrong tokenizer's text looks right.
  EXPECT_NE(refusal("--decode", "[1]\n[1, 7999999, 2]\n").find("line 2: token id 7999999 is beyond the tokenizer's"),
            std::string::npos);
}

TEST(TokenizeCommand, WithoutATokenizerItSaysWhatIsMissing) {
  const Ended ended = run_shell(binary() + " tokenize < /dev/null");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("--tokenizer is missing"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace tessera
