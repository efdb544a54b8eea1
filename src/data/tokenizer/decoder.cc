#include <fmt/format.h>

#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/metaspace.h"
#include "data/tokenizer/steps.h"

namespace tessera::internal {
namespace {

// The byte of a token such as <0x41>; -1: not a byte token. The original parses the digits as a number, which may have
// a plus sign.
int byte_of(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// Runs of byte tokens become text; if the bytes are not valid UTF-8, each becomes U+FFFD.
void decode_byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (num_well_formed_bytes(bytes) == bytes.size()) {
      result.push_back(bytes);
    } else {
      result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      result.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(result);
}

// Strips up to a given number of one character from each end of a token.
Decoder read_strip(const JsonReader& component) {
  component.allow_only({"type", "content", "start", "stop"});
  const std::string character = component.text("content");
  if (to_utf32(character).size() != 1) component.at("content").refuse_value("one character");
  constexpr std::int64_t kMost = 1LL << 40;
  const std::int64_t start = component.integer("start", 0, kMost, 0), stop = component.integer("stop", 0, kMost, 0);
  return [=](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      std::string_view left = token, right = token;
      for (std::int64_t i = 0; i < start && left.starts_with(character); ++i) left.remove_prefix(character.size());
      for (std::int64_t i = 0; i < stop && right.ends_with(character); ++i) right.remove_suffix(character.size());
      // Each end is counted on the whole token, so the two may overlap.
      const std::size_t begin = token.size() - left.size();
      token = begin < right.size() ? std::string(right.substr(begin)) : std::string();
    }
  };
}

}  // namespace

// All tokens become one, since a character's bytes may be spread over several.
void decode_byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += characters_to_bytes(token).value_or(token);
  tokens.assign(1, replace_ill_formed(bytes));
}

Decoder read_decoder(const JsonReader& component) {
  if (component.is_null()) return nullptr;
  const std::string type = component.text("type");
  if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return decode_byte_level;
  }
  if (type == "ByteFallback" || type == "Fuse") {
    component.allow_only({"type"});
    if (type == "ByteFallback") return decode_byte_fallback;
    return [](std::vector<std::string>& tokens) { tokens.assign(1, join(tokens, "")); };
  }
  if (type == "Replace") {
    return [replace = read_replacement(component)](std::vector<std::string>& tokens) {
      for (std::string& token : tokens) token = replace(token);
    };
  }
  if (type == "Metaspace") {
    return
        [metaspace = read_metaspace(component)](std::vector<std::string>& tokens) { unmark_spaces(metaspace, tokens); };
  }
  if (type == "Strip") return read_strip(component);
  if (type == "Sequence") {
    component.allow_only({"type", "decoders"});
    std::vector<Decoder> steps;
    for (const JsonReader& step : component.at("decoders").items()) {
      if (step.is_null()) step.refuse_value("a decoder");
      steps.push_back(read_decoder(step));
    }
    return [steps](std::vector<std::string>& tokens) {
      for (const Decoder& step : steps) step(tokens);
    };
  }
  component.refuse(fmt::format(
      "the decoder \"{}\" is not supported; supported: ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, "
      "Sequence",
      printable(type, 60)));
}

}  // namespace tessera::internal
