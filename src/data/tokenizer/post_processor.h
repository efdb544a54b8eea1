// What is added around the tokens of a text: <s> ... </s> and the like.
#pragma once

#include <cstdint>
#include <vector>

#include "data/tokenizer/component.h"

namespace tessera::internal {

// For one text (not a pair): a list of tokens to add, with kText where the text's own tokens go.
struct PostProcessor {
  static constexpr std::int32_t kText = -1;
  std::vector<std::int32_t> single = {kText};

  // As in the original: without special tokens, every kText still counts.
  std::vector<std::int32_t> apply(std::vector<std::int32_t> ids, bool add_special_tokens) const;
};

// TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing and Sequence; others are refused by name.
PostProcessor read_post_processor(const Component& component);

}  // namespace tessera::internal
