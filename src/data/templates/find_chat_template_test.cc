// Which template of a tokenizer's folder counts, and what else transformers hands to it.
#include "data/templates/find_chat_template.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

std::string found_text(const TestFolder& folder, const Json& config, bool has_tools = false) {
  const auto found = find_chat_template(folder.path(), config, has_tools);
  return found ? found->text : "nothing";
}

TEST(FindChatTemplate, TheConfigHasATextOrNamedOnes) {
  const TestFolder folder;
  EXPECT_EQ(found_text(folder, Json::object()), "nothing");
  EXPECT_EQ(found_text(folder, {{"chat_template", nullptr}}), "nothing");
  EXPECT_EQ(found_text(folder, {{"chat_template", "one"}}, true), "one");
  const Json named = {
      {"chat_template", {{{"name", "default"}, {"template", "d"}}, {{"name", "tool_use"}, {"template", "t"}}}}};
  EXPECT_EQ(found_text(folder, named), "d");
  EXPECT_EQ(found_text(folder, named, true), "t");
}

TEST(FindChatTemplate, FilesOfTheFolderReplaceThoseOfTheConfig) {
  const TestFolder folder;
  const Json config = {{"chat_template", "of the config"}};
  write_file_atomically(folder / "chat_template.jinja", "of the file");
  EXPECT_EQ(found_text(folder, config), "of the file");
  EXPECT_EQ(find_chat_template(folder.path(), config)->origin, (folder / "chat_template.jinja").string());
  std::filesystem::create_directory(folder / "additional_chat_templates");
  write_file_atomically(folder / "additional_chat_templates/tool_use.jinja", "with tools");
  EXPECT_EQ(found_text(folder, config), "of the file");
  EXPECT_EQ(found_text(folder, config, true), "with tools");
}

TEST(FindChatTemplate, WithoutADefaultTheNamesAreShown) {
  const TestFolder folder;
  const Json config = {
      {"chat_template", {{{"name", "rag"}, {"template", "r"}}, {{"name", "brief"}, {"template", "b"}}}}};
  EXPECT_EQ(message_of([&] { found_text(folder, config); }),
            folder.path().string() + ": none of the chat templates is named default; there are: brief, rag");
  EXPECT_EQ(message_of([&] {
              found_text(folder, {{"chat_template", 5}});
            }),
            (folder / "tokenizer_config.json").string() + ": chat_template: expected an array, found 5");
}

TEST(FindChatTemplate, SpecialTokensAreTextsOrObjects) {
  const TestFolder folder;
  const Json config = {
      {"bos_token", {{"content", "<s>"}, {"lstrip", false}}}, {"eos_token", "</s>"}, {"pad_token", nullptr}};
  EXPECT_EQ(special_token_texts(folder.path(), config), (Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  write_file_atomically(folder / "special_tokens_map.json", R"({"eos_token": {"content": "<end>"}})");
  EXPECT_EQ(special_token_texts(folder.path(), config), (Json{{"bos_token", "<s>"}, {"eos_token", "<end>"}}));
}

TEST(FindChatTemplate, MessagesAreHandedOnAsTransformersDoes) {
  const Json messages = {{{"role", "user"}, {"content", "x"}, {"tool_calls", nullptr}},
                         {{"role", "assistant"}, {"reasoning", "r"}, {"content", nullptr}},
                         {{"role", "assistant"}, {"thinking", "t"}}};
  EXPECT_EQ(messages_for_template(messages).dump(),
            R"([{"role":"user","content":"x"},)"
            R"({"thinking":"r","role":"assistant","reasoning":"r","reasoning_content":"r"},)"
            R"({"role":"assistant","thinking":"t","reasoning_content":"t"}])");
}

}  // namespace
}  // namespace tessera
