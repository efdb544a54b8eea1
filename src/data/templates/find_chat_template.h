// The chat template of a tokenizer's folder, and the texts of its special tokens, as transformers chooses them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/json.h"

namespace tessera {

struct FoundTemplate {
  std::string text, origin;  // origin: what messages call it
};

// chat_template.jinja and additional_chat_templates/NAME.jinja in the folder; without them, `chat_template` of
// tokenizer_config.json: a text, or a list of {name, template}. Of several, "tool_use" where tools are given (an empty
// list, too), else "default"; without these, refused with the names there are. Nothing: there is no template.
std::optional<FoundTemplate> find_chat_template(const std::filesystem::path& folder, const Json& tokenizer_config,
                                                bool has_tools = false);

// {"bos_token": "<s>", ...} of those that tokenizer_config.json and special_tokens_map.json name, each a text or
// {content}: variables of the template.
Json special_token_texts(const std::filesystem::path& folder, const Json& tokenizer_config);

// The messages as transformers hands them on: members that are null go, and the names of reasoning texts
// (reasoning_content, thinking, reasoning) are filled from each other.
Json messages_for_template(const Json& messages);

}  // namespace tessera
