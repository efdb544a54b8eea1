// Changes a text before it is split: Unicode normal forms, lower case, replacements.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer/component.h"

namespace tessera::internal {

// Constant, safe from any thread. Texts are well-formed UTF-8, before and after.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(std::string& text) const = 0;
};

// NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend and Sequence; others are refused by name. Null gives
// nothing.
std::unique_ptr<Normalizer> read_normalizer(const Component& component);

}  // namespace tessera::internal
