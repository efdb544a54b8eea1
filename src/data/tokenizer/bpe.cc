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
  return reads_bytes_ = true;
}

std::optional<std::int32_t> Bpe::whole(std::string_view piece) const {
  if (!reads_bytes_) return vocabulary_.id_of(piece);
  const auto found = whole_pieces_.find(piece);
  if (found == whole_pieces_.end()) return std::nullopt;
  return found->second;
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const {
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
  Unknown unknown;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = at + utf8_length(static_cast<unsigned char>(piece[at]));
    std::string character(piece.substr(at, end - at));
    if (at > 0) character.insert(0, settings_.continuing_subword_prefix);
    if (end == piece.size()) character += settings_.end_of_word_suffix;
    add_character(character, unknown, symbols);
    at = end;
  }
  unknown.flush(symbols);
}

void Bpe::add_character(const std::string& character, Unknown& unknown, std::vector<std::int32_t>& symbols) const {
  if (const auto id = vocabulary_.id_of(character)) {
    unknown.flush(symbols);
    symbols.push_back(*id);
    return;
  }
  if (settings_.byte_fallback) {
    std::vector<std::int32_t> bytes;
    for (const char byte : character) {
      const auto id = vocabulary_.id_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      if (id) bytes.push_back(*id);
    }
    if (bytes.size() == character.size()) {  // before the waiting one, as in the original
      symbols.insert(symbols.end(), bytes.begin(), bytes.end());
      return;
    }
  }
  if (!settings_.unk_token) return;  // the original drops it too
  const auto id = vocabulary_.id_of(*settings_.unk_token);
  if (!id) {
    throw UsageError(fmt::format("{}: the text needs the unknown token \"{}\", which the vocabulary does not have",
                                 where_, printable(*settings_.unk_token, 60)));
  }
  if (!settings_.fuse_unk) unknown.flush(symbols);
  unknown.waiting = *id;
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

namespace {

// "left right"; the original accepts no other form.
std::optional<std::pair<std::string, std::string>> parse_merge(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
}

std::string no_merge(std::string_view line) {
  return fmt::format("expected two tokens with one space between them, found \"{}\"", printable(line, 80));
}

MergePairs read_merges(const JsonReader& component) {
  MergePairs merges;
  bool has_pairs = false, has_lines = false;
  for (const JsonReader& merge : component.items()) {
    if (merge.is_array()) {
      const Json& pair = merge.json();
      if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) merge.refuse_value("a pair of strings");
      merges.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
      has_pairs = true;
    } else {
      const std::string line = merge.as_text();
      has_lines = true;
      if (!line.starts_with("#version")) {
        auto pair = parse_merge(line);
        if (!pair) merge.refuse(no_merge(line));
        merges.push_back(std::move(*pair));
      }
    }
    if (has_pairs && has_lines) merge.refuse("expected merges that are all pairs or all strings, found both");
  }
  return merges;
}

}  // namespace

Vocabulary read_vocabulary(const JsonReader& component) {
  Vocabulary vocabulary;
  for (const auto& [token, value] : component.members()) {
    const std::int32_t id = as_token_id(value);
    if (const auto other = vocabulary.add(token, id)) {
      value.refuse(fmt::format("the id {} already belongs to \"{}\"", id, printable(*other, 60)));
    }
  }
  return vocabulary;
}

MergePairs parse_merges(std::string_view text, const std::string& origin) {
  MergePairs merges;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    auto pair = parse_merge(line);
    if (!pair) throw UsageError(fmt::format("{}:{}: {}", origin, line_number, no_merge(line)));
    merges.push_back(std::move(*pair));
  }
  return merges;
}

Bpe read_bpe(const JsonReader& component) {
  if (component.has("type") && component.text("type") != "BPE") {
    component.refuse(
        fmt::format("the model \"{}\" is not supported; supported: BPE", printable(component.text("type"), 60)));
  }
  component.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                        "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (component.has("dropout") && component.at("dropout").json() != 0.0) {
    component.at("dropout").refuse("dropout of merges is not supported: tokens would differ between runs");
  }
  BpeSettings settings;
  if (component.has("unk_token")) settings.unk_token = component.text("unk_token");
  settings.continuing_subword_prefix = component.text("continuing_subword_prefix", "");
  settings.end_of_word_suffix = component.text("end_of_word_suffix", "");
  settings.fuse_unk = component.boolean("fuse_unk", false);
  settings.byte_fallback = component.boolean("byte_fallback", false);
  settings.ignore_merges = component.boolean("ignore_merges", false);
  return Bpe(read_vocabulary(component.at("vocab")), read_merges(component.at("merges")), std::move(settings),
             component.place());
}

}  // namespace tessera::internal
