// Small templates of our own give what transformers made of them (tools/references/chat_templates.py).
#include <gtest/gtest.h>

#include <filesystem>

#include "core/json.h"
#include "data/templates/chat_template.h"

namespace tessera {
namespace {

class TemplateReferences : public ::testing::TestWithParam<const char*> {};

void expect_as_by_transformers(const Json& expected, const Json& variables) {
  const auto text = expected["template"].get<std::string>();
  SCOPED_TRACE(text);
  const bool is_refused = expected.contains("refused_by_template");
  try {
    const RenderedChat chat = ChatTemplate::of_text(text, "t").render(variables);
    ASSERT_FALSE(is_refused) << "expected a refusal, found: " << chat.text;
    EXPECT_EQ(chat.text, expected["text"].get<std::string>());
    Json generated = Json::array();
    for (const ByteRange& range : chat.generated) generated.push_back({range.begin, range.end});
    EXPECT_EQ(generated, expected.value("generated", Json::array()));
  } catch (const ChatRefused& refusal) {
    EXPECT_TRUE(is_refused && expected["refused_by_template"].get<bool>()) << refusal.what();
  } catch (const UsageError& error) {
    EXPECT_TRUE(is_refused && !expected["refused_by_template"].get<bool>()) << error.what();
  }
}

TEST_P(TemplateReferences, AreRenderedAsByTransformers) {
  const Json file = read_json_file(std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "templates" / GetParam());
  ASSERT_FALSE(file["cases"].empty());
  for (const Json& expected : file["cases"]) expect_as_by_transformers(expected, file["variables"]);
}

INSTANTIATE_TEST_SUITE_P(All, TemplateReferences,
                         ::testing::Values("values.json", "operators.json", "methods.json", "filters.json",
                                           "tests.json", "statements.json", "white_space.json", "chats.json"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           name.resize(name.find('.'));
                           std::erase(name, '_');
                           return name;
                         });

}  // namespace
}  // namespace tessera
