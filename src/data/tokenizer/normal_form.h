// Unicode's normal forms, by the tables of the version that the original knows (unicode.h).
#pragma once

#include <string>

namespace tessera::internal {

struct NormalForm {
  bool compatibility = false, compose = false;  // NFD: neither, NFKC: both
};

void normalize(std::string& text, NormalForm form);

}  // namespace tessera::internal
