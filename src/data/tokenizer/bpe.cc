#include "data/tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal {
namespace {

// Up to this size, scanning all pairs again is faster than keeping them in a heap.
constexpr std::size_t kFewSymbols = 64;

// The heap's top is the pair to merge next: the lowest rank, the leftmost among equals.
struct MergesLater {
  bool operator()(const BpeScratch::Candidate& a, const BpeScratch::Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

std::string byte_token(std::size_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

}  // namespace

// An unknown character waits until it is clear whether the next one is unknown too and joins it.
struct Bpe::Unknown {
  std::optional<std::int32_t> waiting;
  void flush(std::vector<std::int32_t>& symbols) {
    if (waiting) symbols.push_back(*waiting);
    waiting.reset();
  }
};

Bpe::Bpe(Vocabulary vocabulary, const MergePairs& merges, BpeSettings settings, const std::string& where)
    : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)), merges_(merges.size()), where_(where) {
  const auto need = [&](const std::string& token, std::size_t rank) {
    const auto id = vocabulary_.id_of(token);
    if (!id) {
      throw UsageError(fmt::format("{}: merge {} ({} + {}) needs the token \"{}\", which the vocabulary does not have",
                                   where, rank + 1, printable(merges[rank].first, 60),
                                   printable(merges[rank].second, 60), printable(token, 60)));
    }
    return *id;
  };
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    if (right.size() < settings_.continuing_subword_prefix.size()) {
      throw UsageError(fmt::format("{}: merge {} ({} + {}) is shorter than the continuing_subword_prefix", where,
                                   rank + 1, printable(left, 60), printable(right, 60)));
    }
    const std::string whole = left + right.substr(settings_.continuing_subword_prefix.size());
    merges_.add(need(left, rank), need(right, rank), {static_cast<std::uint32_t>(rank), need(whole, rank)});
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    fallback_tokens_[byte] = vocabulary_.id_of(byte_token(byte)).value_or(-1);
  }
  for (std::int32_t id = 0; id < vocabulary_.end_id(); ++id) {
    const std::string* token = vocabulary_.token_of(id);
    if (token == nullptr || token->empty() || utf8_length(static_cast<unsigned char>((*token)[0])) != token->size()) {
      continue;
    }
    const char32_t c = utf8_decode(token->data());
    if (c < kNumCharactersInTable) token_of_character_[c] = id;
  }
  find_cuts(merges);
}

// A whole piece that is a token, and a prefix or suffix, make a place's tokens depend on where the piece begins and
// ends: such pieces cannot be cut.
void Bpe::find_cuts(const MergePairs& merges) {
  if (settings_.ignore_merges || !settings_.continuing_subword_prefix.empty() ||
      !settings_.end_of_word_suffix.empty()) {
    return;
  }
  const bool knows_bytes = settings_.byte_fallback &&
                           std::find(fallback_tokens_.begin(), fallback_tokens_.end(), -1) == fallback_tokens_.end();
  WordCuts::Model model{.merges = merges,
                        .known_ascii = {},
                        .knows_mark = vocabulary_.id_of("\u2581").has_value(),
                        .keeps_unknown_characters = knows_bytes || settings_.unk_token.has_value(),
                        .tokens_of_unknown = {}};
  for (std::size_t c = 0; c < model.known_ascii.size(); ++c) model.known_ascii[c] = token_of_character_[c] >= 0;
  if (settings_.byte_fallback) model.tokens_of_unknown.push_back(byte_token(0));
  if (settings_.unk_token) model.tokens_of_unknown.push_back(*settings_.unk_token);
  cuts_ = WordCuts(model);
}

bool Bpe::read_bytes() {
  // A prefix or suffix makes a byte's token depend on its position, and a dropped or unknown one needs the full path.
  if (!settings_.continuing_subword_prefix.empty() || !settings_.end_of_word_suffix.empty()) return false;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, byte_characters()[byte]);
    token_of_byte_[byte] = vocabulary_.id_of(character).value_or(-1);
  }
  every_byte_is_known_ = std::find(token_of_byte_.begin(), token_of_byte_.end(), -1) == token_of_byte_.end();
  if (settings_.ignore_merges) {
    for (std::int32_t id = 0; id < vocabulary_.end_id(); ++id) {
      const std::string* token = vocabulary_.token_of(id);
      if (token == nullptr) continue;
      if (auto bytes = characters_to_bytes(*token)) whole_pieces_.emplace(std::move(*bytes), id);
    }
  }
  cuts_ = {};  // they are between characters
  return reads_bytes_ = true;
}

std::optional<std::int32_t> Bpe::whole(std::string_view piece) const {
  if (!reads_bytes_) return vocabulary_.id_of(piece);
  const auto found = whole_pieces_.find(piece);
  if (found == whole_pieces_.end()) return std::nullopt;
  return found->second;
}

std::size_t Bpe::num_bytes_of(std::int32_t id) const {
  const std::string* token = vocabulary_.token_of(id);
  if (token == nullptr || *token == settings_.unk_token) return 0;
  if (reads_bytes_) return to_utf32(*token).size();
  if (settings_.byte_fallback && std::ranges::find(fallback_tokens_, id) != fallback_tokens_.end()) return 1;
  return token->size();
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const {
  if (!cuts_.any()) return encode_word(piece, scratch, ids);
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::size_t end = cuts_.end_of_word(piece, begin);
    encode_word(piece.substr(begin, end - begin), scratch, ids);
    begin = end;
  }
}

void Bpe::encode_word(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const {
  const bool cacheable = piece.size() <= WordCache::kMaxKeyBytes;
  WordCache::Key key;
  if (cacheable) {
    key = WordCache::key_of(piece);
    if (const auto known = scratch.cache.find(key); !known.empty()) {
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
  }
  std::vector<std::int32_t>& symbols = scratch.symbols;
  symbols.clear();
  const auto single = settings_.ignore_merges ? whole(piece) : std::nullopt;
  if (single) {
    symbols.push_back(*single);
  } else {
    if (reads_bytes_ && every_byte_is_known_) {
      add_bytes(piece, symbols);
    } else {
      add_characters(reads_bytes_ ? bytes_to_characters(piece) : piece, symbols);
    }
    symbols.size() <= kFewSymbols ? merge_few(scratch) : merge_many(scratch);
  }
  if (cacheable) scratch.cache.insert(key, symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::add_bytes(std::string_view piece, std::vector<std::int32_t>& symbols) const {
  for (const char byte : piece) symbols.push_back(token_of_byte_[static_cast<unsigned char>(byte)]);
}

void Bpe::add_characters(std::string_view piece, std::vector<std::int32_t>& symbols) const {
  const bool is_plain = settings_.continuing_subword_prefix.empty() && settings_.end_of_word_suffix.empty();
  Unknown unknown;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = at + utf8_length(static_cast<unsigned char>(piece[at]));
    const std::string_view character = piece.substr(at, end - at);
    if (is_plain) {
      add_character(character, id_of_character(character), unknown, symbols);
    } else {
      std::string token(character);
      if (at > 0) token.insert(0, settings_.continuing_subword_prefix);
      if (end == piece.size()) token += settings_.end_of_word_suffix;
      add_character(token, vocabulary_.id_of(token).value_or(-1), unknown, symbols);
    }
    at = end;
  }
  unknown.flush(symbols);
}

std::int32_t Bpe::id_of_character(std::string_view character) const {
  const char32_t c = utf8_decode(character.data());
  return c < kNumCharactersInTable ? token_of_character_[c] : vocabulary_.id_of(character).value_or(-1);
}

// `id`: of the character's own token; -1: none.
void Bpe::add_character(std::string_view character, std::int32_t id, Unknown& unknown,
                        std::vector<std::int32_t>& symbols) const {
  if (id >= 0) {
    unknown.flush(symbols);
    symbols.push_back(id);
    return;
  }
  if (settings_.byte_fallback) {
    const auto token_of = [this](char byte) { return fallback_tokens_[static_cast<unsigned char>(byte)]; };
    if (std::all_of(character.begin(), character.end(), [&](char byte) { return token_of(byte) >= 0; })) {
      for (const char byte : character)
        symbols.push_back(token_of(byte));  // before the waiting one, as in the original
      return;
    }
  }
  if (!settings_.unk_token) return;  // the original drops it too
  const auto unk_id = vocabulary_.id_of(*settings_.unk_token);
  if (!unk_id) {
    throw UsageError(fmt::format("{}: the text needs the unknown token \"{}\", which the vocabulary does not have",
                                 where_, printable(*settings_.unk_token, 60)));
  }
  if (!settings_.fuse_unk) unknown.flush(symbols);
  unknown.waiting = *unk_id;
}

void Bpe::merge_few(BpeScratch& scratch) const {
  std::vector<std::int32_t>& symbols = scratch.symbols;
  std::vector<std::uint32_t>& ranks = scratch.ranks;
  const auto rank_at = [&](std::size_t i) {
    return i + 1 < symbols.size() ? merges_.find(symbols[i], symbols[i + 1]).rank : MergeTable::kNoRank;
  };
  ranks.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) ranks.push_back(rank_at(i));
  while (symbols.size() > 1) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());
    if (*lowest == MergeTable::kNoRank) return;
    const auto i = static_cast<std::size_t>(lowest - ranks.begin());
    symbols[i] = merges_.find(symbols[i], symbols[i + 1]).token;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ranks[i] = rank_at(i);
    if (i > 0) ranks[i - 1] = rank_at(i - 1);
  }
}

void Bpe::merge_many(BpeScratch& scratch) const {
  auto& links = scratch.links;
  auto& heap = scratch.heap;
  links.clear();
  heap.clear();
  const auto count = static_cast<std::int32_t>(scratch.symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    links.push_back({scratch.symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto link = [&](std::int32_t i) -> BpeScratch::Link& { return links[static_cast<std::size_t>(i)]; };
  const auto consider = [&](std::int32_t left) {
    const Merge merge = merges_.find(link(left).token, link(link(left).next).token);
    if (merge.rank == MergeTable::kNoRank) return false;
    heap.push_back({merge.rank, static_cast<std::uint32_t>(left), merge.token});
    return true;
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) consider(i);
  std::make_heap(heap.begin(), heap.end(), MergesLater{});
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), MergesLater{});
    const BpeScratch::Candidate best = heap.back();
    heap.pop_back();
    const auto at = static_cast<std::int32_t>(best.position);
    if (link(at).token == -1 || link(at).next == -1) continue;
    const std::int32_t right = link(at).next;
    // The pair may have changed since it was pushed.
    if (merges_.find(link(at).token, link(right).token).token != best.token) continue;
    link(at) = {best.token, link(at).previous, link(right).next};
    link(right).token = -1;
    if (link(at).next != -1) link(link(at).next).previous = at;
    if (link(at).previous != -1 && consider(link(at).previous)) std::push_heap(heap.begin(), heap.end(), MergesLater{});
    if (link(at).next != -1 && consider(at)) std::push_heap(heap.begin(), heap.end(), MergesLater{});
  }
  scratch.symbols.clear();
  for (const BpeScratch::Link& left : links) {
    if (left.token != -1) scratch.symbols.push_back(left.token);
  }
}

}  // namespace tessera::internal
