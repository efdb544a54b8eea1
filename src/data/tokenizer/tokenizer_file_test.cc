// What files may hold, and what is refused: always with the file, the place in it and what was expected.
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

#include "core/error.h"
#include "support/message_of.h"
#include "support/tokenizer_references.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using internal::changed_file;
using internal::reference_folder;

// The file's name without line and column, which depend on the file that the change is made in.
std::string refusal(const std::string& file) {
  try {
    Tokenizer::from_json(file, "t.json");
  } catch (const UsageError& error) {
    return std::regex_replace(error.what(), std::regex("^t.json:1:\\d+:"), "t.json:1:N:");
  }
  return "accepted";
}

std::string refusal_of_changes(const Json& changes) {
  return refusal(changed_file("characters", changes));
}

TEST(TokenizerFile, AnUnsupportedComponentIsRefusedByName) {
  EXPECT_EQ(
      refusal_of_changes(Json{{"normalizer", {{"type", "BertNormalizer"}}}}),
      "t.json:1:N: normalizer: the normalizer \"BertNormalizer\" is not supported; supported: NFC, NFD, NFKC, NFKD, "
      "Lowercase, Strip, Replace, Prepend, Sequence");
  EXPECT_NE(refusal_of_changes(
                Json{{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Punctuation"}}}}}}})
                .find("t.json:1:N: pre_tokenizer.pretokenizers[0]: the pre-tokenizer \"Punctuation\" is not supported"),
            std::string::npos);
  EXPECT_NE(refusal_of_changes(Json{{"post_processor", {{"type", "Magic"}}}}).find("the post-processor \"Magic\""),
            std::string::npos);
  EXPECT_NE(refusal_of_changes(Json{{"decoder", {{"type", "WordPiece"}}}}).find("the decoder \"WordPiece\""),
            std::string::npos);
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"type", "Unigram"}}}}),
            "t.json:1:N: model: the model \"Unigram\" is not supported; supported: BPE");
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"dropout", 0.1}}}}),
            "t.json:1:N: model.dropout: dropout of merges is not supported: tokens would differ between runs");
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"dropout", 0.0}}}}), "accepted");
}

TEST(TokenizerFile, AKeyThatIsNotKnownIsRefused) {
  EXPECT_EQ(refusal_of_changes(Json{{"colour", 1}}),
            "t.json:1:N: colour: unknown key; known keys: version, truncation, padding, added_tokens, normalizer, "
            "pre_tokenizer, post_processor, decoder, model");
  EXPECT_NE(
      refusal_of_changes(Json{{"normalizer", {{"type", "NFC"}, {"fast", true}}}}).find("normalizer.fast: unknown key"),
      std::string::npos);
}

TEST(TokenizerFile, WrongValuesAreNamedWithTheirPlace) {
  EXPECT_EQ(refusal_of_changes(Json{{"version", "2.0"}}), "t.json:1:N: version: expected \"1.0\", found \"2.0\"");
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"vocab", {{"a", -1}}}}}}),
            "t.json:1:N: model.vocab.a: expected a whole number from 0 to 4194303, found -1");
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"vocab", {{"a", 1}, {"b", 1}}}}}}),
            "t.json:1:N: model.vocab.b: the id 1 already belongs to \"a\"");
  EXPECT_EQ(refusal_of_changes(Json{{"model", {{"merges", {"a b c"}}}}}),
            "t.json:1:N: model.merges[0]: expected two tokens with one space between them, found \"a b c\"");
  EXPECT_NE(refusal_of_changes(Json{{"model", {{"merges", Json::array({Json::array({"a"})})}}}})
                .find("expected a pair of strings"),
            std::string::npos);
  EXPECT_NE(refusal("{\"version\": \"1.0\"").find("t.json:1:"), std::string::npos);
  EXPECT_EQ(refusal("[]"), "t.json:1:N: the file: expected an object, found an array");
  EXPECT_NE(refusal("{}").find("\"model\" is missing"), std::string::npos);
}

class TokenizerFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("tessera-tokenizer-{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& content) { write_file_atomically(folder_ / name, content); }

  fs::path folder_;
};

TEST_F(TokenizerFolder, TheFilesBesideNameTheSpecialTokens) {
  write("tokenizer.json", changed_file("bloom_like", Json::object()));
  write("tokenizer_config.json", R"({"eos_token": "<s>", "pad_token": "<pad>", "padding_side": "left"})");
  write("special_tokens_map.json", R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>"})");
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_EQ(tokenizer.pad_id(), 3);
  EXPECT_EQ(tokenizer.padding_side(), PaddingSide::kLeft);
  EXPECT_EQ(tokenizer.id_of("</s>"), 2);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 8000);
}

TEST_F(TokenizerFolder, TheClassDecidesThePaddingSideIfTheConfigDoesNot) {
  write("tokenizer.json", changed_file("bloom_like", Json::object()));
  const auto side_of = [&](const std::string& config) {
    write("tokenizer_config.json", config);
    return Tokenizer::load(folder_).padding_side();
  };
  EXPECT_EQ(side_of(R"({"tokenizer_class": "LlamaTokenizer"})"), PaddingSide::kLeft);
  EXPECT_EQ(side_of(R"({"tokenizer_class": "GemmaTokenizerFast"})"), PaddingSide::kLeft);
  EXPECT_EQ(side_of(R"({"tokenizer_class": "LlamaTokenizer", "padding_side": "right"})"), PaddingSide::kRight);
  EXPECT_EQ(side_of(R"({"tokenizer_class": "Qwen2Tokenizer"})"), PaddingSide::kRight);
}

TEST_F(TokenizerFolder, ASpecialTokenThatTheVocabularyLacksIsRefused) {
  write("tokenizer.json", changed_file("bloom_like", Json::object()));
  write("tokenizer_config.json", R"({"pad_token": "[PAD]"})");
  try {
    Tokenizer::load(folder_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), folder_.string() + ": pad_token is \"[PAD]\", which the vocabulary does not have");
  }
}

TEST_F(TokenizerFolder, Gpt2sEndTokenIsKnownWithoutBeingNamed) {
  const Tokenizer tokenizer = internal::load_gpt2(::testing::TempDir());
  EXPECT_EQ(tokenizer.eos_id(), 50256);
  EXPECT_EQ(tokenizer.bos_id(), 50256);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_EQ(tokenizer.padding_side(), PaddingSide::kRight);
  EXPECT_EQ(tokenizer.vocab_size(), 50257);
}

TEST_F(TokenizerFolder, MistakesInMergesHaveTheirLine) {
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "#version: 0.2\na b\nab\n");
  try {
    Tokenizer::load(folder_);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              (folder_ / "merges.txt").string() + ":3: expected two tokens with one space between them, found \"ab\"");
  }
  fs::remove(folder_ / "merges.txt");
  EXPECT_THROW(Tokenizer::load(folder_), UsageError);
}

TEST_F(TokenizerFolder, TokensThatTheConfigAddsAreFound) {
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "a b\n");
  write("tokenizer_config.json", R"({"eos_token": "<e>", "added_tokens_decoder": {"3": {"content": "<e>",
      "single_word": false, "lstrip": true, "rstrip": false, "normalized": false, "special": true}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer.encode("ab <e>a"), (std::vector<std::int32_t>{2, 3, 0}));
  EXPECT_EQ(tokenizer.eos_id(), 3);
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  write("added_tokens.json", R"({"<e>": 3})");
  EXPECT_THROW(Tokenizer::load(folder_), UsageError);
}

// transformers 5 ignores these two keys beside a tokenizer.json and follows them beside vocab.json.
TEST_F(TokenizerFolder, TheConfigSaysWhatIsAddedOnlyWithoutATokenizerJson) {
  const std::string config = R"({"bos_token": "a", "eos_token": "b", "add_bos_token": true, "add_eos_token": true})";
  write("tokenizer_config.json", config);
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "a b\n");
  EXPECT_EQ(Tokenizer::load(folder_).encode("ab"), (std::vector<std::int32_t>{0, 2, 1}));
  EXPECT_EQ(Tokenizer::load(folder_).encode("ab", false), (std::vector<std::int32_t>{2}));
  write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  EXPECT_EQ(Tokenizer::load(folder_).encode("ab"), (std::vector<std::int32_t>{2}));
}

TEST_F(TokenizerFolder, VocabAndMergesOfAnotherClassAreRefused) {
  write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  write("vocab.json", R"({"a": 0})");
  write("merges.txt", "");
  EXPECT_NE(
      message_of([&] {
        Tokenizer::load(folder_);
      }).find("tokenizer_config.json:1:21: tokenizer_class: vocab.json and merges.txt can only be read as GPT-2's"),
      std::string::npos);
}

TEST_F(TokenizerFolder, FilesThatOnlyTransformersReadsAreRefusedWithTheWayToConvertThem) {
  write("tekken.json", "{}");
  EXPECT_EQ(message_of([&] { Tokenizer::load(folder_); }),
            fmt::format("{0}/tekken.json: cannot be read; make a tokenizer.json of it: python3 -c \"from transformers "
                        "import AutoTokenizer; AutoTokenizer.from_pretrained('{0}', "
                        "mistral_format=False).save_pretrained('{0}')\"",
                        folder_.string()));
}

// Where a text's beginning went is not known behind such a normalizer.
TEST(TokenizerFile, MetaspaceThatMarksTheBeginningIsRefusedBehindANormalizerThatMayDropIt) {
  const Json metaspace = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  const auto refusal_of = [&](const Json& normalizer) {
    return refusal_of_changes(Json{{"normalizer", normalizer}, {"pre_tokenizer", metaspace}});
  };
  EXPECT_NE(refusal_of(Json{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}})
                .find("normalizer: before the pre-tokenizer Metaspace with prepend_scheme \"first\", only NFC"),
            std::string::npos);
  EXPECT_EQ(refusal_of(Json{{"type", "NFC"}}), "accepted");
  EXPECT_EQ(refusal_of(nullptr), "accepted");
}

TEST(TokenizerFile, MetaspaceThatMarksTheBeginningIsRefusedBehindAStepThatPutsTextInFront) {
  const Json first = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  Json before = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "always"}};
  const auto refusal_of = [&] {
    return refusal_of_changes(
        Json{{"normalizer", nullptr}, {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {before, first}}}}});
  };
  EXPECT_NE(refusal_of().find("pretokenizers[1]: prepend_scheme \"first\" is not supported behind"), std::string::npos);
  before["prepend_scheme"] = "never";
  EXPECT_EQ(refusal_of(), "accepted");
  before = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  EXPECT_NE(refusal_of().find("is not supported behind"), std::string::npos);
}

TEST_F(TokenizerFolder, TheContentHashFollowsTheContent) {
  const std::string file = changed_file("characters", Json::object());
  const auto hash = [](const std::string& text) { return Tokenizer::from_json(text, "t.json").content_hash(); };
  EXPECT_EQ(hash(file), hash(file));
  EXPECT_NE(hash(file), hash(changed_file("characters", Json{{"decoder", nullptr}})));
}

}  // namespace
}  // namespace tessera
