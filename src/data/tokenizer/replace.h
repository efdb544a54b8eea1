// Replace, which is both a normalizer and a decoder; and the pattern that Replace and Split use.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer/component.h"
#include "data/tokenizer/pattern.h"

namespace tessera::internal {

// {"String": "..."} or {"Regex": "..."}.
std::unique_ptr<Pattern> read_pattern(const Component& component);

class Replacement {
 public:
  Replacement(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string apply(std::string_view text) const;

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

Replacement read_replacement(const Component& component);

}  // namespace tessera::internal
