// Turns of a chat, as rows spell them, in the form that chat templates read: [{"role": ..., "content": ...}].
#pragma once

#include <string>

#include "core/json.h"

namespace tessera {

// Either spelling, turn by turn:
//   {"role", "content", "tool_calls", ...}   kept as it is, contents that are null or lists included; other members
//                                            that are null are left out, as TRL does: Arrow has every one in each turn
//   {"from", "value"}                        ShareGPT: human, user, gpt, assistant, system, observation, tool;
//                                            function_call: {"name": ..., "arguments": ...} as text, or a list of them
// `place` is what messages call the array: "conversations". Throws UsageError: "conversations[2].from: ...".
Json read_messages(const Json& turns, const std::string& place);

// Puts a system text before the messages, unless they begin with one or it is empty.
void add_system_text(Json& messages, const std::string& text);

Json message(const char* role, std::string content);

// A text that holds JSON, or the value itself: how tools are stored. An array.
Json read_tools(const Json& value, const std::string& place);

}  // namespace tessera
