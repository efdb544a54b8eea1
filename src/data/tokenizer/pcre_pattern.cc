#include "data/tokenizer/pattern.h"

namespace tessera::internal {

bool has_pcre() {
  return false;
}
std::unique_ptr<Pattern> make_pcre_pattern(const std::string&, const std::string&) {
  return nullptr;
}

}  // namespace tessera::internal
