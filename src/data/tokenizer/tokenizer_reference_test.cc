// Equality with the `tokenizers` package: ids, ids without special tokens and both ways of decoding, for every
// reference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "core/text.h"
#include "support/tokenizer_references.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using namespace internal;

const Json& references() {
  static const Json json = read_json_file(reference_folder() / "variants.json");
  return json;
}

std::vector<std::string> names_of_variants_with(const char* reference) {
  std::vector<std::string> names;
  for (const Json& variant : references()["variants"]) {
    if (variant.contains(reference)) names.push_back(variant["name"]);
  }
  return names;
}

const Json& variant_named(const std::string& name) {
  for (const Json& variant : references()["variants"]) {
    if (variant["name"] == name) return variant;
  }
  throw std::runtime_error("no variant " + name);
}

Tokenizer make(const Json& variant) {
  if (variant["base"] == "gpt2") return load_gpt2(::testing::TempDir());
  return Tokenizer::from_json(changed_file(variant["base"], variant["changes"]), variant["name"]);
}

// Without Oniguruma only six expressions can be read; everything else must still match.
bool needs_oniguruma(const Json& variant) {
  const std::string text = variant["changes"].dump();
  return text.find("Regex") != std::string::npos && variant["name"] != "gpt2_split" && variant["name"] != "llama3" &&
         variant["name"] != "mixed_case";
}

class Variant : public ::testing::TestWithParam<std::string> {
 protected:
  const Json& variant_ = variant_named(GetParam());
};

TEST_P(Variant, EqualsTheOriginalOnRandomTextsOfEveryPlaneBrokenOnesIncluded) {
  if (needs_oniguruma(variant_) && !has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const Tokenizer tokenizer = make(variant_);
  const std::uint64_t seed = references()["seed"], texts_per_block = references()["texts_per_block"];
  ASSERT_GE(variant_["random"].size() * texts_per_block, 20'000U);
  for (std::uint64_t block = 0; block < variant_["random"].size(); ++block) {
    ASSERT_EQ(digest(tokenizer, random_texts(seed, block, texts_per_block)),
              variant_["random"][block].get<std::string>())
        << "block " << block << ": tools/references/tokenizer.py --only " << GetParam() << " --block " << block;
  }
}

class VariantOfCharacters : public Variant {};

TEST_P(VariantOfCharacters, EqualsTheOriginalOnEveryCodePoint) {
  if (needs_oniguruma(variant_) && !has_oniguruma()) GTEST_SKIP() << "built without Oniguruma";
  const Tokenizer tokenizer = make(variant_);
  const bool checks_all = std::getenv("TESSERA_TEST_EVERYTHING") != nullptr;
  for (char32_t plane = 0; plane < 17; ++plane) {
    // Planes that have no assigned character, or only private ones, are all alike.
    if (plane >= 4 && plane != 14 && plane != 16 && !checks_all) continue;
    ASSERT_EQ(digest(tokenizer, code_point_texts(plane)), variant_["code_points"][plane].get<std::string>())
        << "plane " << int(plane);
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Variant, ::testing::ValuesIn(names_of_variants_with("random")),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Tokenizers, VariantOfCharacters, ::testing::ValuesIn(names_of_variants_with("code_points")),
                         [](const auto& test) { return test.param; });

TEST(TokenizerReference, EqualsTheOriginalOnASampleOfSquadAndThirtyLanguages) {
  const Tokenizer gpt2 = load_gpt2(::testing::TempDir());
  const Tokenizer bloom = Tokenizer::load(reference_folder() / "bloom_like.json");
  const Json sample = read_json_file(reference_folder() / "squad_sample.json");
  ASSERT_GT(sample.size(), 100U);
  for (const Json& item : sample) {
    const std::string text = item["text"];
    EXPECT_EQ(gpt2.encode(text), item["gpt2"].get<std::vector<std::int32_t>>()) << text;
    EXPECT_EQ(bloom.encode(text), item["bloom_like"].get<std::vector<std::int32_t>>()) << text;
    EXPECT_EQ(gpt2.decode(gpt2.encode(text)), text);
    EXPECT_EQ(bloom.decode(bloom.encode(text)), text);
  }
}

// What llama.cpp's tests compare with the original's GPT-2: strings between marks, and one line of ids for each.
TEST(TokenizerReference, GivesGpt2sIdsForTheReferenceStrings) {
  const Tokenizer gpt2 = load_gpt2(::testing::TempDir());
  const std::string strings = read_file(reference_folder() / "reference_strings.txt");
  const std::string mark = "\n__ggml_vocab_test__\n";
  const std::vector<std::string> lines = split(read_file(reference_folder() / "reference_ids_gpt2.txt"), '\n');
  std::size_t at = 0, line = 0;
  while (at < strings.size()) {
    const std::size_t end = std::min(strings.find(mark, at), strings.size());
    std::string expected;
    for (const std::int32_t id : gpt2.encode(strings.substr(at, end - at))) expected += fmt::format(" {}", id);
    ASSERT_LT(line, lines.size());
    EXPECT_EQ(expected, lines[line]) << strings.substr(at, end - at);
    at = end + mark.size();
    ++line;
  }
  EXPECT_GE(line, 45U);
}

TEST(TokenizerReference, EqualsTheOriginalOnMegabytesWithoutSpaces) {
  std::string letters;
  std::uint64_t state = 7;
  for (int i = 0; i < 1'000'000; ++i) {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    letters += static_cast<char>('a' + (z ^ (z >> 31)) % 26);
  }
  std::string alternating;
  for (int i = 0; i < 500'000; ++i) alternating += "ab";
  const std::map<std::string, std::string> texts = {{"one_letter", std::string(1'000'000, 'a')},
                                                    {"no_spaces", letters},
                                                    {"only_spaces", std::string(1'000'000, ' ')},
                                                    {"alternating", alternating}};
  for (const char* name : {"gpt2", "bloom_like"}) {
    const Json variant = variant_named(name);
    const Tokenizer tokenizer = make(variant);
    for (const auto& [kind, text] : texts) {
      EXPECT_EQ(digest(tokenizer, {text}), variant["long"][kind].get<std::string>()) << name << ", " << kind;
    }
  }
}

// All 10,570 questions, with their contexts and answers.
TEST(TokenizerReference, EqualsTheOriginalOnAllOfSquadsDevSet) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "TESSERA_TEST_DATA does not name the folder with squad/dev-v1.1.json";
  const Json squad = read_json_file(fs::path(data) / "squad/dev-v1.1.json");
  std::vector<std::vector<std::string>> articles;
  std::size_t num_questions = 0;
  for (const Json& article : squad["data"]) {
    std::vector<std::string>& texts = articles.emplace_back();
    for (const Json& paragraph : article["paragraphs"]) {
      texts.push_back(paragraph["context"]);
      for (const Json& question : paragraph["qas"]) {
        ++num_questions;
        texts.push_back(question["question"]);
        for (const Json& answer : question["answers"]) texts.push_back(answer["text"]);
      }
    }
  }
  EXPECT_EQ(num_questions, 10'570U);
  for (const char* name : {"gpt2", "bloom_like"}) {
    const Json variant = variant_named(name);
    const Tokenizer tokenizer = make(variant);
    ASSERT_EQ(articles.size(), variant["squad_dev"].size());
    for (std::size_t i = 0; i < articles.size(); ++i) {
      EXPECT_EQ(digest(tokenizer, articles[i]), variant["squad_dev"][i].get<std::string>())
          << name << ", article " << i;
    }
  }
}

TEST(TokenizerReference, Gpt2sVocabularyFollowsFromItsMerges) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "TESSERA_TEST_DATA does not name the folder with gpt2_fallback/vocab.json";
  const fs::path folder = fs::path(data) / "gpt2_fallback";
  EXPECT_EQ(parse_json(gpt2_vocabulary(read_file(folder / "merges.txt")), "made"),
            read_json_file(folder / "vocab.json"));
}

}  // namespace
}  // namespace tessera
