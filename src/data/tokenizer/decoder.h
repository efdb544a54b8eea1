// Tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/component.h"

namespace tessera::internal {

// One step; constant, safe from any thread. Tokens are well-formed UTF-8, before and after.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// ByteLevel, ByteFallback, Fuse, Replace, Strip and Sequence; others are refused by name. Null gives nothing.
std::unique_ptr<Decoder> read_decoder(const Component& component);
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace tessera::internal
