#include "data/templates/chat_template.h"

#include <utility>

#include "data/templates/evaluator.h"
#include "data/templates/parser.h"

namespace tessera {

ChatTemplate ChatTemplate::of_text(std::string text, const std::string& origin) {
  return ChatTemplate(internal::jinja::parse_program(internal::jinja::SourceText(text, origin)));
}

bool ChatTemplate::marks_generation() const {
  return program_->marks_generation;
}

RenderedChat ChatTemplate::render(const Json& variables, const RenderOptions& options) const {
  internal::jinja::Rendering rendering(program_->source, options);
  return internal::jinja::Evaluator(*program_, rendering).run(variables);
}

}  // namespace tessera
