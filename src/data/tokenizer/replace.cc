#include "data/tokenizer/replace.h"

namespace tessera::internal {

std::unique_ptr<Pattern> read_pattern(const Component& component) {
  component.allow_only({"String", "Regex"});
  if (component.json().size() != 1) component.refuse_value("either \"String\" or \"Regex\"");
  if (component.has("String")) return make_literal_pattern(component.text("String"), component.where());
  return make_pattern(component.text("Regex"), component.where());
}

std::string Replacement::apply(std::string_view text) const {
  std::vector<Match> matches;
  if (!text.empty()) pattern_->find_all(text, matches);
  std::string result;
  std::size_t done = 0;
  for (const Match& match : matches) {
    result += text.substr(done, match.begin - done);
    result += content_;
    done = match.end;
  }
  return result += text.substr(done);
}

Replacement read_replacement(const Component& component) {
  component.allow_only({"type", "pattern", "content"});
  return {read_pattern(component.child("pattern")), component.text("content")};
}

}  // namespace tessera::internal
