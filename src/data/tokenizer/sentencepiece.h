// tokenizer.model: what SentencePiece writes, for folders without a tokenizer.json.
//
// Read as transformers 5 does for its LlamaTokenizer: a token's merges are all its splits into two other tokens, and
// their ranks follow from its id. Other classes and other kinds of models are refused, with the way to make a
// tokenizer.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer_file.h"

namespace tessera::internal {

struct SentencePieceModel {
  enum Kind { kUnigram = 1, kBpe = 2 };
  enum Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    int type = kNormal;
  };
  std::vector<Piece> pieces;  // by id
  int kind = kUnigram;
  bool has_character_map = false;  // a normal form of its own
};
// The message ModelProto of SentencePiece's sentencepiece_model.proto. Throws UsageError with the origin.
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& origin);

// `model`: a tokenizer.model; tokenizer_config.json beside it names the class.
TokenizerParts read_sentencepiece(const std::filesystem::path& model);
// What to do with a file that transformers can turn into a tokenizer.json.
std::string how_to_convert(const std::filesystem::path& folder, const std::string& options = "");

}  // namespace tessera::internal
