#include "weights/block_checksums.h"

#include <fmt/format.h>

#include <algorithm>

#define XXH_INLINE_ALL  // no library to link
#include <xxhash.h>

namespace tessera {
namespace {

std::string text_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

struct BlockChecksums::Running {
  XXH3_state_t state;
};

BlockChecksums::BlockChecksums() : running_(std::make_unique<Running>()) {
  XXH3_128bits_reset(&running_->state);
}

BlockChecksums::~BlockChecksums() = default;

void BlockChecksums::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), static_cast<std::size_t>(kChecksumBlock - in_block_));
    XXH3_128bits_update(&running_->state, bytes.data(), count);
    bytes.remove_prefix(count);
    in_block_ += static_cast<std::int64_t>(count);
    if (in_block_ == kChecksumBlock) end_block();
  }
}

std::vector<std::string> BlockChecksums::finish() {
  if (in_block_ > 0) end_block();
  return std::move(finished_);
}

void BlockChecksums::end_block() {
  finished_.push_back(text_of(XXH3_128bits_digest(&running_->state)));
  XXH3_128bits_reset(&running_->state);
  in_block_ = 0;
}

std::string checksum_of(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace tessera
