#include "data/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/tokenizer_file.h"

namespace tessera {

using internal::AddedToken;
using internal::Segment;

namespace {

// The working state of one encode() call. Kept for the next call, with the words it remembers.
struct Scratch {
  internal::BpeScratch bpe;
  internal::Pieces pieces;
  std::vector<Segment> segments, normalized_segments;
};

}  // namespace

struct Tokenizer::Impl {
  internal::TokenizerParts parts;
  // One per thread that has ever been in encode() at the same time.
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;

  explicit Impl(internal::TokenizerParts its_parts) : parts(std::move(its_parts)) {}

  std::unique_ptr<Scratch> take() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
      }
    }
    return std::make_unique<Scratch>();
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }

  void encode_plain(std::string_view text, bool is_beginning, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    scratch.pieces.begin(text, is_beginning);
    for (const auto& step : parts.pre_tokenizers.steps) step(scratch.pieces);
    for (const std::string_view piece : scratch.pieces.views) parts.model.encode(piece, scratch.bpe, ids);
  }

  // Normalizes a part between added tokens, then looks for those that are found in normalized text.
  void encode_segment(std::string_view text, bool is_beginning, Scratch& scratch,
                      std::vector<std::int32_t>& ids) const {
    std::string normalized;
    if (parts.normalizer) {
      normalized = text;
      parts.normalizer(normalized);
      text = normalized;
    }
    if (!parts.added_tokens.any(true)) return encode_plain(text, is_beginning, scratch, ids);
    scratch.normalized_segments.clear();
    parts.added_tokens.split(text, true, scratch.normalized_segments);
    for (const Segment& segment : scratch.normalized_segments) {
      const bool is_first = is_beginning && segment.text.data() == text.data();
      segment.id >= 0 ? ids.push_back(segment.id) : encode_plain(segment.text, is_first, scratch, ids);
    }
  }

  // How many bytes the model is given of a part between added tokens.
  std::size_t num_model_bytes(std::string_view text, bool is_beginning, Scratch& scratch) const {
    std::string normalized(text);
    if (parts.normalizer) parts.normalizer(normalized);
    scratch.pieces.begin(normalized, is_beginning);
    for (const auto& step : parts.pre_tokenizers.steps) step(scratch.pieces);
    std::size_t sum = 0;
    for (const std::string_view piece : scratch.pieces.views) sum += piece.size();
    return sum;
  }
  std::size_t num_bytes_of(std::int32_t id) const {
    const AddedToken* added = parts.added_tokens.token_of(id);
    return added != nullptr ? added->content.size() : parts.model.num_bytes_of(id);
  }

  std::vector<std::int32_t> encode(std::string_view text, Scratch& scratch) const {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size() / 3 + 8);
    scratch.segments.clear();
    parts.added_tokens.split(text, false, scratch.segments);
    for (const Segment& segment : scratch.segments) {
      const bool is_first = segment.text.data() == text.data();
      segment.id >= 0 ? ids.push_back(segment.id) : encode_segment(segment.text, is_first, scratch, ids);
    }
    return ids;
  }
};

// Between added tokens, the same bytes reach the model whether the text goes on or not; so the length of what a
// beginning of it becomes, and the lengths of the tokens, tell which token holds which byte.
class Tokenizer::Marker {
 public:
  Marker(const Impl& impl, Scratch& scratch, std::string_view text, std::span<const ByteRange> ranges)
      : impl_(impl), scratch_(scratch), text_(text), ranges_(ranges) {}

  Marked run() {
    std::vector<Segment> segments;
    impl_.parts.added_tokens.split(text_, false, segments);
    for (const Segment& segment : segments) {
      if (segment.id >= 0) {
        marked_.ids.push_back(segment.id);
        marked_.is_marked.push_back(!ranges_within(segment.text).empty());
      } else {
        add_text(segment.text);
      }
    }
    return std::move(marked_);
  }

 private:
  // The parts of the ranges that lie in a part of the text, from its beginning.
  std::vector<ByteRange> ranges_within(std::string_view part) const {
    const auto offset = static_cast<std::size_t>(part.data() - text_.data());
    std::vector<ByteRange> found;
    for (const ByteRange& range : ranges_) {
      const std::size_t begin = std::max(range.begin, offset), end = std::min(range.end, offset + part.size());
      if (begin < end) found.push_back({begin - offset, end - offset});
    }
    return found;
  }

  void add_text(std::string_view part) {
    const bool is_first = part.data() == text_.data();
    const std::size_t first = marked_.ids.size();
    impl_.encode_segment(part, is_first, scratch_, marked_.ids);
    marked_.is_marked.resize(marked_.ids.size(), false);
    const std::vector<ByteRange> ranges = ranges_within(part);
    if (ranges.empty()) return;
    std::vector<std::size_t> ends;  // of the tokens, in the model's bytes
    for (std::size_t i = first; i < marked_.ids.size(); ++i) {
      ends.push_back((ends.empty() ? 0 : ends.back()) + impl_.num_bytes_of(marked_.ids[i]));
    }
    if (ends.empty() || ends.back() != impl_.num_model_bytes(part, is_first, scratch_)) {
      throw UsageError("which tokens belong to a part of the text cannot be told: it has characters without a token");
    }
    for (const ByteRange& range : ranges) {
      const std::size_t begin = impl_.num_model_bytes(part.substr(0, range.begin), is_first, scratch_);
      const std::size_t end = impl_.num_model_bytes(part.substr(0, range.end), is_first, scratch_);
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] > begin && (i == 0 ? 0 : ends[i - 1]) < end) marked_.is_marked[first + i] = true;
      }
    }
  }

  const Impl& impl_;
  Scratch& scratch_;
  std::string_view text_;
  std::span<const ByteRange> ranges_;
  Marked marked_;
};

Tokenizer::Marked Tokenizer::encode_marked(std::string_view text, std::span<const ByteRange> ranges) const {
  if (internal::num_well_formed_bytes(text) != text.size()) {
    throw UsageError("a text of which parts are marked must be UTF-8");
  }
  auto scratch = impl_->take();
  Marked marked = Marker(*impl_, *scratch, text, ranges).run();
  impl_->give_back(std::move(scratch));
  return marked;
}

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  return Tokenizer(std::make_shared<Impl>(internal::read_tokenizer(path)));
}

Tokenizer Tokenizer::from_json(std::string_view text, const std::string& origin) {
  return Tokenizer(std::make_shared<Impl>(internal::read_tokenizer_json(std::string(text), origin)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::string repaired;
  if (internal::num_well_formed_bytes(text) != text.size()) text = repaired = internal::replace_ill_formed(text);
  auto scratch = impl_->take();
  std::vector<std::int32_t> ids = impl_->encode(text, *scratch);  // if it throws, its scratch is dropped
  impl_->give_back(std::move(scratch));
  return impl_->parts.post_processor.apply(std::move(ids), add_special_tokens);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  const internal::TokenizerParts& parts = impl_->parts;
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (id < 0) throw UsageError(fmt::format("{} is not a token id: expected 0 to {}", id, vocab_size() - 1));
    const AddedToken* added = parts.added_tokens.token_of(id);
    const std::string* token = added != nullptr ? &added->content : parts.model.vocabulary().token_of(id);
    if (token == nullptr || (skip_special_tokens && parts.added_tokens.is_special(*token))) continue;
    tokens.push_back(*token);
  }
  if (!parts.decoder) return join(tokens, " ");
  parts.decoder(tokens);
  return join(tokens, "");
}

std::int64_t Tokenizer::vocab_size() const {
  return std::max(impl_->parts.model.vocabulary().end_id(), impl_->parts.added_tokens.end_id());
}
std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  return impl_->parts.id_of(token);
}
bool Tokenizer::is_added(std::int32_t id) const {
  return impl_->parts.added_tokens.token_of(id) != nullptr;
}
std::optional<std::int32_t> Tokenizer::eos_id() const {
  return impl_->parts.eos_id;
}
std::optional<std::int32_t> Tokenizer::bos_id() const {
  return impl_->parts.bos_id;
}
std::optional<std::int32_t> Tokenizer::pad_id() const {
  return impl_->parts.pad_id;
}
PaddingSide Tokenizer::padding_side() const {
  return impl_->parts.padding_side;
}
const std::string& Tokenizer::content_hash() const {
  return impl_->parts.content_hash;
}

}  // namespace tessera
