// "model" of tokenizer.json, vocab.json and merges.txt.
#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/bpe.h"

namespace tessera::internal {
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
