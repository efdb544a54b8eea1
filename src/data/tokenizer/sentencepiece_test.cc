#include "data/tokenizer/sentencepiece.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "data/tokenizer/tokenizer.h"
#include "support/message_of.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A field of a message: its number and wire type, the size, the bytes. All are shorter than 128 bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string number(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}
std::string piece(const std::string& text, int type = 1) {
  return field(1, field(1, text) + std::string("\x15\0\0\x80\x3F", 5) + number(3, type));  // 1.0 is the score
}
std::string model_of_kind(int kind, const std::string& more = "") {
  return piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("<0x41>", 6) + piece("\u2581") + piece("a") +
         piece("b") + piece("ab") + piece("\u2581ab") + piece("[INST]", 4) + more + field(2, number(3, kind));
}

class SentencePiece : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("tessera-sentencepiece-{}", ::getpid());
    fs::create_directories(folder_);
    write("tokenizer.model", model_of_kind(2));
    write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& content) { write_file_atomically(folder_ / name, content); }
  std::string refusal() const {
    return message_of([&] { Tokenizer::load(folder_); });
  }

  fs::path folder_;
};

TEST_F(SentencePiece, IsReadAsTransformersReadsALlamaTokenizer) {
  const Tokenizer tokenizer = Tokenizer::load(folder_);
  EXPECT_EQ(tokenizer.encode("ab abA[INST]b"), (std::vector<std::int32_t>{1, 8, 8, 3, 9, 6}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab abA[INST]b"), true), "ab abAb");
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  EXPECT_EQ(tokenizer.padding_side(), PaddingSide::kLeft);
  EXPECT_EQ(Tokenizer::load(folder_ / "tokenizer.model").content_hash(), tokenizer.content_hash());
}

TEST_F(SentencePiece, LegacyMarksEveryPartOfATextAndAddPrefixSpaceNone) {
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})");
  EXPECT_EQ(Tokenizer::load(folder_).encode("ab[INST]ab"), (std::vector<std::int32_t>{8, 9, 8}));
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})");
  EXPECT_EQ(Tokenizer::load(folder_).encode("ab[INST]ab"), (std::vector<std::int32_t>{7, 9, 7}));
}

TEST_F(SentencePiece, OthersAreRefusedWithTheWayToConvertThem) {
  write("tokenizer_config.json", R"({"tokenizer_class": "GemmaTokenizer"})");
  EXPECT_NE(refusal().find("only be read for tokenizer_class LlamaTokenizer, not \"GemmaTokenizer\"; make a "
                           "tokenizer.json of it: python3 -c "),
            std::string::npos)
      << refusal();
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer",
                                     "added_tokens_decoder": {"10": {"content": "<pad>", "special": true}}})");
  EXPECT_NE(refusal().find("added_tokens_decoder.10: not supported beside"), std::string::npos) << refusal();
  write("tokenizer.model", model_of_kind(2, field(3, field(2, "map"))));
  EXPECT_NE(refusal().find("tokenizer.model: models with a normal form of their own cannot be read; make a"),
            std::string::npos)
      << refusal();
}

// Converting it would give a tokenizer.json that is refused too.
TEST_F(SentencePiece, UnigramModelsAreRefusedWithoutAWayToConvertThem) {
  write("tokenizer.model", model_of_kind(1));
  EXPECT_EQ(refusal(), (folder_ / "tokenizer.model").string() +
                           ": only BPE models are supported, and this one is Unigram, words or characters");
}

TEST_F(SentencePiece, BrokenFilesAreRefused) {
  const std::string whole = model_of_kind(2);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("tokenizer.model", whole.substr(0, size));
    EXPECT_THROW(Tokenizer::load(folder_), UsageError) << size;
  }
  write("tokenizer.model", "version https");
  EXPECT_NE(refusal().find("tokenizer.model: not a protocol buffers message: "), std::string::npos) << refusal();
  write("tokenizer.model", model_of_kind(2, piece("a")));
  EXPECT_NE(refusal().find("the piece \"a\" stands in it twice"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace tessera
