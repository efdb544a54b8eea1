// The model's part of a tokenizer file.
#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/bpe.h"

namespace tessera::internal {
namespace {

// "left right"; the original accepts no other form.
std::pair<std::string, std::string> parse_merge(std::string_view line, const std::string& where) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    throw UsageError(
        fmt::format("{}: expected two tokens with one space between them, found \"{}\"", where, printable(line, 80)));
  }
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

MergePairs read_merges(const Component& component) {
  MergePairs merges;
  bool has_pairs = false, has_lines = false;
  for (const Component& merge : component.children("merges")) {
    if (merge.json().is_array()) {
      const Json& pair = merge.json();
      if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) merge.refuse_value("a pair of strings");
      merges.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
      has_pairs = true;
    } else {
      const std::string line = merge.as_text();
      has_lines = true;
      if (!line.starts_with("#version")) merges.push_back(parse_merge(line, merge.where()));
    }
    if (has_pairs && has_lines) merge.refuse("expected merges that are all pairs or all strings, found both");
  }
  return merges;
}

}  // namespace

Vocabulary read_vocabulary(const Component& component) {
  if (!component.json().is_object()) component.refuse_value("an object of tokens and their ids");
  Vocabulary vocabulary;
  for (const auto& item : component.json().items()) {
    const Component value(item.value(), fmt::format("{}[\"{}\"]", component.where(), printable(item.key(), 60)));
    const std::int32_t id = value.as_id();
    if (const auto other = vocabulary.add(item.key(), id)) {
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
    if (!line.starts_with("#version")) merges.push_back(parse_merge(line, fmt::format("{}:{}", origin, line_number)));
  }
  return merges;
}

Bpe read_bpe(const Component& component) {
  if (component.has("type") && component.type() != "BPE") {
    component.refuse(fmt::format("the model \"{}\" is not supported; supported: BPE", printable(component.type(), 60)));
  }
  component.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                        "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (component.has("dropout") && component.child("dropout").json() != 0.0) {
    component.child("dropout").refuse("dropout of merges is not supported: tokens would differ between runs");
  }
  BpeSettings settings;
  const auto text_or_none = [&](const char* key) { return component.has(key) ? component.text(key) : ""; };
  if (component.has("unk_token")) settings.unk_token = component.text("unk_token");
  settings.continuing_subword_prefix = text_or_none("continuing_subword_prefix");
  settings.end_of_word_suffix = text_or_none("end_of_word_suffix");
  settings.fuse_unk = component.flag("fuse_unk", false);
  settings.byte_fallback = component.flag("byte_fallback", false);
  settings.ignore_merges = component.flag("ignore_merges", false);
  return Bpe(read_vocabulary(component.child("vocab")), read_merges(component), std::move(settings), component.where());
}

}  // namespace tessera::internal
