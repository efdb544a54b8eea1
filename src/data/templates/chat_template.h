// Chat templates: a conversation to the text that a model reads, as transformers renders it with Jinja2.
//
//   const ChatTemplate chat = ChatTemplate::of_text(text, "model/chat_template.jinja");
//   const RenderedChat rendered = chat.render({{"messages", messages}, {"add_generation_prompt", false}});
//
// The language is the part of Jinja2 that published templates use, with Python's meaning of every value and operator;
// what is left out is refused by name. The environment is transformers': trim_blocks, lstrip_blocks, break and
// continue, {% generation %}, raise_exception, strftime_now, and a tojson that leaves characters as they are. A
// template comes from strangers: it reaches no file, and RenderLimits bound what it may take. Immutable after parsing,
// so any number of threads may use one.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {

struct RenderedChat {
  std::string text;
  std::vector<ByteRange> generated;  // what {% generation %} marked, in the order of their ends
  // False where one stood in a macro, a block or another one, whose text goes elsewhere: transformers does not know
  // its place then, and gives the end of the text so far. Do not train on such ranges.
  bool generated_is_exact = true;
};

// What one rendering may take; a template that needs more is refused.
struct RenderLimits {
  std::size_t num_steps = 10'000'000;  // operations, values visited, and 64 bytes of text made
  std::size_t output_bytes = 64 * 1024 * 1024;
  std::size_t depth = 200;  // levels of nested values
};

struct RenderOptions {
  RenderLimits limits = {};
  std::optional<std::time_t> now = {};  // of strftime_now; absent: the clock
};

// The template itself refuses the conversation, by raise_exception: "roles must alternate".
class ChatRefused : public UsageError {
 public:
  using UsageError::UsageError;
};

namespace internal::jinja {
struct Program;
}

class ChatTemplate {
 public:
  // `origin` is what messages call the template, usually its path. Throws UsageError with line, column and what was
  // expected there.
  static ChatTemplate of_text(std::string text, const std::string& origin);

  const std::string& source() const;  // the text as it was given

  // Whether it marks with {% generation %} what the model is to write.
  bool marks_generation() const;

  // `variables` is an object: messages, tools, add_generation_prompt, bos_token and so on. Throws UsageError with the
  // place in the template: ChatRefused, or the mistake that Python would report, or a limit.
  RenderedChat render(const Json& variables, const RenderOptions& options = {}) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const internal::jinja::Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const internal::jinja::Program> program_;
};

}  // namespace tessera
