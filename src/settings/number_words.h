// The names that files and frameworks use for number types.
#pragma once

#include <optional>
#include <string>

#include "core/text.h"

namespace tessera {

// "fp32", "fp16" or "bf16" for "float32", "torch.float16", "BFLOAT16", "half" and the like; none for other words.
inline std::optional<std::string> number_type_word(const std::string& word) {
  std::string plain = lower_case(word);
  if (plain.starts_with("torch.")) plain.erase(0, 6);
  if (plain == "fp32" || plain == "float32" || plain == "float") return "fp32";
  if (plain == "fp16" || plain == "float16" || plain == "half") return "fp16";
  if (plain == "bf16" || plain == "bfloat16" || plain == "bfp16") return "bf16";
  return std::nullopt;
}

}  // namespace tessera
