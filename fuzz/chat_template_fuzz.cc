// Chat templates: whatever parses renders a conversation, or is refused, within its limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "data/templates/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tessera::Json variables = tessera::parse_json(R"({
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "What's \"x\"?\n\u4f60"},
                 {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {
                   "name": "look", "arguments": {"b": [1, 2.5, null], "a": "\u00e9<&>'"}}}]}],
    "tools": [{"type": "function", "function": {"name": "look"}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true})",
                                                             "variables");
  // Small, so that a fuzzer need not wait for templates that loop.
  const tessera::RenderOptions options = {{.num_steps = 200'000, .output_bytes = 1 << 20}, 0};
  try {
    const auto chat = tessera::ChatTemplate::of_text(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    const tessera::RenderedChat rendered = chat.render(variables, options);
    if (!rendered.generated_is_exact) return 0;
    for (const tessera::ByteRange& range : rendered.generated) {
      if (range.begin > range.end || range.end > rendered.text.size()) std::abort();
    }
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
