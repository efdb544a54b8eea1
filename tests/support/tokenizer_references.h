// tests/data/tokenizer for tests: the tokenizers there, and hashes of the original's output for many texts.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/json.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/tokenizer.h"
#include "support/random_text.h"
#include "support/sha256.h"

namespace tessera::internal {

inline std::filesystem::path reference_folder() {
  return std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "tokenizer";
}

inline bool has_oniguruma() {
  return make_expression("a", "") != nullptr;
}

// GPT-2's vocab.json, which follows from its merges: bytes (printable ones first), merges in order, the end of text.
inline std::string gpt2_vocabulary(const std::string& merges) {
  Json::object_t::Container tokens;
  const auto add = [&](std::string token) { tokens.emplace_back(std::move(token), tokens.size()); };
  for (const bool printable : {true, false}) {
    for (const char32_t c : byte_characters()) {
      std::string token;
      append_utf8(token, c);
      if ((c < 0x100) == printable) add(std::move(token));
    }
  }
  std::size_t at = merges.find('\n') + 1;
  while (at < merges.size()) {
    const std::size_t space = merges.find(' ', at), end = merges.find('\n', at);
    add(merges.substr(at, space - at) + merges.substr(space + 1, end - space - 1));
    at = end + 1;
  }
  add("<|endoftext|>");
  Json vocabulary = Json::object();
  static_cast<Json::object_t::Container&>(vocabulary.get_ref<Json::object_t&>()) = std::move(tokens);
  return vocabulary.dump();
}

// Written to its own folder under the test's temporary folder.
inline Tokenizer load_gpt2(const std::filesystem::path& temporary) {
  const std::string merges = read_file(reference_folder() / "gpt2_merges.txt");
  const std::filesystem::path folder = temporary / fmt::format("tessera-gpt2-{}", ::getpid());
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "vocab.json", gpt2_vocabulary(merges));
  write_file_atomically(folder / "merges.txt", merges);
  Tokenizer tokenizer = Tokenizer::load(folder);
  std::filesystem::remove_all(folder);
  return tokenizer;
}

// A base file with top-level parts replaced; "model" only key by key.
inline std::string changed_file(const std::string& base, const Json& changes) {
  Json content = read_json_file(reference_folder() / (base + ".json"));
  for (const auto& item : changes.items()) {
    if (item.key() != "model") {
      content[item.key()] = item.value();
      continue;
    }
    for (const auto& part : item.value().items()) content["model"][part.key()] = part.value();
  }
  return content.dump();
}

// tools/references/tokenizer.py computes the same digest of the original's answers.
inline std::string digest(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Sha256 total;
  const auto add = [&](std::string_view part) { total.add(part).add(std::string_view("\0", 1)); };
  for (const std::string& text : texts) {
    const auto ids = tokenizer.encode(text);
    add(fmt::format("{}", fmt::join(ids, ",")));
    add(fmt::format("{}", fmt::join(tokenizer.encode(text, false), ",")));
    add(tokenizer.decode(ids));
    add(tokenizer.decode(ids, true));
  }
  return total.hex().substr(0, 16);
}

inline std::vector<std::string> random_texts(std::uint64_t seed, std::uint64_t block, std::uint64_t texts_per_block) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < texts_per_block; ++i)
    texts.push_back(RandomText::make(seed, block * texts_per_block + i));
  return texts;
}

// Each code point of a plane between letters, digits and spaces, 256 per text.
inline std::vector<std::string> code_point_texts(char32_t plane) {
  std::vector<std::string> texts;
  for (char32_t begin = plane << 16; begin < (plane + 1) << 16; begin += 256) {
    std::string& text = texts.emplace_back();
    for (char32_t c = begin; c < begin + 256; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string character;
      append_utf8(character, c);
      text += "a" + character + "b " + character + character + "1";
    }
  }
  return texts;
}

}  // namespace tessera::internal
