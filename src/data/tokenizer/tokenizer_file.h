// A tokenizer's parts, as read from its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/steps.h"
#include "data/tokenizer/tokenizer.h"

namespace tessera::internal {

struct TokenizerParts {
  Bpe model;
  Normalizer normalizer;  // may be none
  PreTokenizers pre_tokenizers;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  Decoder decoder;  // may be none
  std::string content_hash;
  std::optional<std::int32_t> eos_id = {}, bos_id = {}, pad_id = {};
  PaddingSide padding_side = PaddingSide::kRight;

  std::optional<std::int32_t> id_of(std::string_view token) const;
};

TokenizerParts read_tokenizer_json(std::string text, const std::string& origin);
// See Tokenizer::load.
TokenizerParts read_tokenizer(const std::filesystem::path& path);

}  // namespace tessera::internal
