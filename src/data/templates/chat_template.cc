#include "data/templates/chat_template.h"

#include <utility>

#include "data/templates/evaluator.h"
#include "data/templates/parser.h"

namespace tessera {

ChatTemplate ChatTemplate::of_text(std::string text, const std::string& origin) {
  auto program = std::make_shared<internal::jinja::Program>(std::move(text), origin);
  internal::jinja::Parser(*program).run();
  return ChatTemplate(std::move(program));
}

const std::string& ChatTemplate::source() const {
  return program_->original;
}

bool ChatTemplate::marks_generation() const {
  return program_->marks_generation;
}

RenderedChat ChatTemplate::render(const Json& variables, const RenderOptions& options) const {
  internal::jinja::Rendering rendering(program_->source, options);
  return internal::jinja::Evaluator(*program_, rendering).run(variables);
}

}  // namespace tessera
