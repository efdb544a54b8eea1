// Files of the forms that today's model families use, against the original's answers for odd texts: ids, ids without
// special tokens and both ways of decoding. tools/references/small_families.py made them.
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/tokenizer_references.h"

namespace tessera {
namespace {

using namespace internal;

const Json& family_references() {
  static const Json json = read_json_file(reference_folder() / "families.json");
  return json;
}

std::vector<std::string> names_of_families() {
  std::vector<std::string> names;
  for (const Json& family : family_references()["families"]) names.push_back(family["name"]);
  return names;
}

const Json& family_named(const std::string& name) {
  for (const Json& family : family_references()["families"]) {
    if (family["name"] == name) return family;
  }
  throw std::runtime_error("no family " + name);
}

class FamilyOfTokenizers : public ::testing::TestWithParam<std::string> {
 protected:
  const Json& family_ = family_named(GetParam());
  const Json& texts_ = family_references()["texts"];
  Tokenizer tokenizer_ = Tokenizer::from_json(changed_file(family_["base"], family_["changes"]), GetParam());
};

TEST_P(FamilyOfTokenizers, GivesTheOriginalsIdsAndTextsInFull) {
  const Json& shown = family_references()["shown"];
  ASSERT_GE(shown.size(), 20U);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Json& expected = family_["answers"][i];
    const std::string text = texts_[shown[i].get<std::size_t>()];
    const auto ids = tokenizer_.encode(text);
    EXPECT_EQ(fmt::format("{}", fmt::join(ids, ",")), expected[0].get<std::string>()) << text;
    EXPECT_EQ(fmt::format("{}", fmt::join(tokenizer_.encode(text, false), ",")), expected[1].get<std::string>())
        << text;
    EXPECT_EQ(tokenizer_.decode(ids), expected[2].get<std::string>());
    EXPECT_EQ(tokenizer_.decode(ids, true), expected[3].get<std::string>());
  }
}

TEST_P(FamilyOfTokenizers, EqualsTheOriginalOnOddTexts) {
  ASSERT_GE(texts_.size(), 700U);
  ASSERT_EQ(texts_.size(), family_["hashes"].size());
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const std::string text = texts_[i];
    EXPECT_EQ(digest(tokenizer_, {text}).substr(0, 8), family_["hashes"][i].get<std::string>())
        << "text " << i << ": " << text;
  }
}

// tools/references/marked_texts.py made these.
TEST_P(FamilyOfTokenizers, MarksTheTokensThatHoldAPart) {
  static const Json file = read_json_file(reference_folder() / "marked_texts.json");
  const Json& families = file["families"];
  const auto own =
      std::find_if(families.begin(), families.end(), [](const Json& each) { return each["name"] == GetParam(); });
  ASSERT_NE(own, families.end());
  std::size_t num_compared = 0;
  for (std::size_t i = 0; i < file["texts"].size(); ++i) {
    const std::string text = file["texts"][i][0];
    const ByteRange range{file["texts"][i][1], file["texts"][i][2]};
    const Json& held = (*own)["tokens"][i];
    if (GetParam().starts_with("unknown_") || held[0].is_null() || held[1].is_null()) continue;
    const Tokenizer::Marked marked = tokenizer_.encode_marked(text, std::vector{range});
    EXPECT_EQ(marked.ids, tokenizer_.encode(text, false)) << text;
    std::vector<bool> expected(marked.ids.size(), false);
    for (std::size_t token = held[0]; token <= held[1].get<std::size_t>(); ++token) expected.at(token) = true;
    EXPECT_EQ(marked.is_marked, expected) << text << " " << range.begin << " to " << range.end;
    ++num_compared;
  }
  EXPECT_GE(num_compared, GetParam().starts_with("unknown_") ? 0U : 20U);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, FamilyOfTokenizers, ::testing::ValuesIn(names_of_families()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera
