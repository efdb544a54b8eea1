#include "data/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/log.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {
namespace {

bool ends_with_word(std::string_view text) {
  return !text.empty() && (CharTable::get()[utf8_decode(text.data() + utf8_previous(text, text.size()))] & kPlainWord);
}
bool begins_with_word(std::string_view text) {
  return !text.empty() && (CharTable::get()[utf8_decode(text.data())] & kPlainWord);
}

}  // namespace

void TextFinder::add(std::string_view text, std::int32_t id) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto [place, is_new] = nodes_[node].next.emplace(byte, static_cast<std::uint32_t>(nodes_.size()));
    node = place->second;
    if (is_new) nodes_.emplace_back();
  }
  if (nodes_[node].id == -1) nodes_[node].id = id;
  only_beginning_ = static_cast<unsigned char>(text[0]);
  num_beginnings_ += begins_[only_beginning_] ? 0 : 1;
  begins_[only_beginning_] = true;
}

std::optional<TextFinder::Found> TextFinder::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (num_beginnings_ == 1) {  // "<", most often
      const void* place = std::memchr(text.data() + begin, only_beginning_, text.size() - begin);
      if (place == nullptr) return std::nullopt;
      begin = static_cast<std::size_t>(static_cast<const char*>(place) - text.data());
    } else if (!begins_[static_cast<unsigned char>(text[begin])]) {
      continue;
    }
    std::optional<Found> longest;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto next = nodes_[node].next.find(static_cast<unsigned char>(text[at]));
      if (next == nodes_[node].next.end()) break;
      node = next->second;
      if (nodes_[node].id != -1) longest = Found{begin, at + 1, nodes_[node].id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                         const Normalizer& normalizer) {
  // The original looks for special tokens first, then for the others, each in file order.
  std::vector<const AddedToken*> specials, others;
  for (const AddedToken& token : tokens) {
    if (token.special && !token.content.empty() && special_.insert(token.content).second) specials.push_back(&token);
  }
  std::int32_t next_id = vocabulary.num_tokens();
  std::unordered_map<std::string, std::vector<AddedToken>> seen;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    auto& same = seen[token.content];
    if (std::find(same.begin(), same.end(), token) != same.end()) continue;
    same.push_back(token);
    auto id = id_of(token.content);
    if (!id) id = vocabulary.id_of(token.content);
    if (!id) id = next_id++;
    ids_[token.content] = *id;
    tokens_[*id] = token;
    end_id_ = std::max(end_id_, *id + 1);
    if (!special_.contains(token.content)) others.push_back(&token);
  }
  specials.insert(specials.end(), others.begin(), others.end());
  for (const AddedToken* token : specials) {
    std::string content = token->content;
    if (token->normalized && normalizer) normalizer(content);
    (token->normalized ? normalized_ : plain_).add(content, ids_.find(token->content)->second);
  }
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<Segment>& segments) const {
  const TextFinder& finder = normalized ? normalized_ : plain_;
  std::size_t done = 0;
  if (!finder.empty()) {
    std::size_t from = 0;
    while (const auto found = finder.find(text, from)) {
      from = found->end;
      auto [begin, end, id] = *found;
      const AddedToken& token = tokens_.at(id);
      if (token.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) continue;
      // The token before may have taken white space past this one's beginning or end: then there is no more to take.
      if (token.lstrip) begin = begin < done ? done : done + begin_of_trailing_space(text.substr(done, begin - done));
      if (token.rstrip) end = end < done ? done : end + end_of_leading_space(text.substr(end));
      if (begin >= end) continue;
      if (done < begin) segments.push_back({text.substr(done, begin - done), -1});
      segments.push_back({text.substr(begin, end - begin), id});
      done = end;
    }
  }
  if (done < text.size()) segments.push_back({text.substr(done), -1});
}

std::optional<std::int32_t> AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(content);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const AddedToken* AddedTokens::token_of(std::int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

namespace {

AddedToken read_token(const JsonReader& token) {
  return {token.text("content"),   token.boolean("single_word"), token.boolean("lstrip"),
          token.boolean("rstrip"), token.boolean("normalized"),  token.boolean("special")};
}

}  // namespace

std::vector<AddedToken> read_added_tokens_decoder(const JsonReader& config, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (!config.has("added_tokens_decoder")) return tokens;
  std::int32_t next_id = vocabulary.num_tokens();
  for (const auto& [key, component] : config.at("added_tokens_decoder").members()) {
    tokens.push_back(read_token(component));
    const auto known = vocabulary.id_of(tokens.back().content);
    const std::int32_t id = known ? *known : next_id++;
    if (key != std::to_string(id)) component.refuse(fmt::format("this token's id is {}", id));
  }
  return tokens;
}

AddedTokens read_added_tokens(const JsonReader& file, const Vocabulary& vocabulary, const Normalizer& normalizer) {
  if (!file.has("added_tokens")) return {};
  std::vector<AddedToken> tokens;
  const std::vector<JsonReader> components = file.at("added_tokens").items();
  for (const JsonReader& component : components) {
    component.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    as_token_id(component.at("id"));
    tokens.push_back(read_token(component));
  }
  AddedTokens added(tokens, vocabulary, normalizer);
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto id = added.id_of(tokens[i].content);
    const std::int32_t written = as_token_id(components[i].at("id"));
    if (id && *id != written) {
      log_warn("{}: the file gives \"{}\" the id {}, but its position gives {}, which is used (as in `tokenizers`)",
               components[i].place(), printable(tokens[i].content, 60), written, *id);
    }
  }
  return added;
}

}  // namespace tessera::internal
