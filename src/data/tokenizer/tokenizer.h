// Text to token ids and back, as the `tokenizers` package does it, for BPE vocabularies.
//
// Immutable after loading, so any number of threads may use one. Does not depend on torch. docs/tokenizer.md lists the
// supported parts of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"

namespace tessera {

enum class PaddingSide { kLeft, kRight };

class Tokenizer {
 public:
  // `path`: a tokenizer.json or tokenizer.model, or a folder that holds one, or a folder with vocab.json + merges.txt.
  // tokenizer_config.json and special_tokens_map.json beside it, if any, name the special tokens. Throws Error naming
  // the file and the component that is unsupported or wrong.
  static Tokenizer load(const std::filesystem::path& path);
  // The text of a tokenizer.json; `origin` is what messages call it.
  static Tokenizer from_json(std::string_view text, const std::string& origin);

  // `add_special_tokens` lets the post-processor add its tokens. The file's truncation and padding are ignored. Text
  // that is not UTF-8 is read as if each maximal ill-formed part were U+FFFD (Python's errors="replace"). Throws Error
  // if an expression of the file takes too many steps, or a needed unknown token is missing.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;
  // The same tokens, and which of them hold a byte of the ranges, which are in order and do not overlap. Without the
  // tokens that the post-processor adds. Throws UsageError if the text has characters that no token stands for.
  struct Marked {
    std::vector<std::int32_t> ids;
    std::vector<bool> is_marked;  // as long
  };
  Marked encode_marked(std::string_view text, std::span<const ByteRange> ranges) const;
  // Always UTF-8: bytes that make no character become U+FFFD. Ids that no token has are skipped, as in the original
  // (models often have more rows than the vocabulary has tokens); negative ones are refused.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  std::int64_t vocab_size() const;  // added tokens included: the largest id + 1
  std::optional<std::int32_t> id_of(std::string_view token) const;
  bool is_added(std::int32_t id) const;  // beside the model's vocabulary: </s>, <|im_end|>
  std::optional<std::int32_t> eos_id() const, bos_id() const, pad_id() const;
  PaddingSide padding_side() const;
  // A hash of everything that decides what `encode` gives: the key of caches.
  const std::string& content_hash() const;

 private:
  struct Impl;
  class Marker;
  explicit Tokenizer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace tessera
