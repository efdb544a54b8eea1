// Text to token ids and back, as the `tokenizers` package does it, for the byte-level BPE family.
//
// Immutable after load, so any number of threads may use one. Knows no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class PaddingSide { kLeft, kRight };

class Tokenizer {
 public:
  // `path`: a tokenizer.json, or a folder that holds one, or one with vocab.json + merges.txt. tokenizer_config.json and
  // special_tokens_map.json beside it, if any, name the special tokens. Throws Error naming the file and the component
  // that is not supported or not right.
  static Tokenizer load(const std::filesystem::path& path);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // `add_special_tokens` lets the post-processor add what it adds. Truncation and padding are not applied here.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special_tokens = true) const;
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  std::int64_t vocab_size() const;  // added tokens included: the largest id + 1
  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::int32_t> eos_id() const, bos_id() const, pad_id() const;
  PaddingSide padding_side() const;
  // Of everything that decides what `encode` gives: the key of caches.
  const std::string& content_hash() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
