// Unicode's normal forms, from the tables of the Unicode version that the original uses (unicode.h).
#pragma once

#include <string>

namespace tessera::internal {

struct NormalForm {
  bool compatibility = false, compose = false;  // NFD: neither, NFKC: both
};

void normalize(std::string& text, NormalForm form);

}  // namespace tessera::internal
