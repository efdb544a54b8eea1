#include "data/tokenizer/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/pattern.h"

namespace tessera::internal {
namespace {

// All tokens become one, since a character's bytes may be spread over several.
class ByteLevelDecoder : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += characters_to_bytes(token).value_or(token);
    tokens.assign(1, num_well_formed_bytes(bytes) == bytes.size() ? bytes : replace_ill_formed(bytes));
  }
};

// Runs of <0x41> become text; if the bytes are not valid UTF-8, each becomes U+FFFD.
class ByteFallback : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
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

 private:
  // -1: not a byte token. The original parses the digits as a number, which may have a plus sign.
  static int byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
    const auto digit = [](char c) {
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
  }
};

class Fuse : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens.assign(1, join(tokens, "")); }
};

class ReplaceDecoder : public Decoder {
 public:
  explicit ReplaceDecoder(Replacement replacement) : replacement_(std::move(replacement)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = replacement_.apply(token);
  }

 private:
  Replacement replacement_;
};

// Strips up to a given number of one character from each end of a token.
class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string character, std::int64_t start, std::int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view view = token, left = token;
      for (std::int64_t i = 0; i < start_ && left.starts_with(character_); ++i) left.remove_prefix(character_.size());
      const std::size_t begin = view.size() - left.size();
      std::string_view right = view;
      for (std::int64_t i = 0; i < stop_ && right.ends_with(character_); ++i) right.remove_suffix(character_.size());
      // Each end is counted on the whole token, so the two may overlap.
      token = begin < right.size() ? std::string(right.substr(begin)) : std::string();
    }
  }

 private:
  std::string character_;
  std::int64_t start_, stop_;
};

class DecoderSequence : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<Decoder> read_decoder(const Component& component) {
  if (component.is_null()) return nullptr;
  const std::string type = component.type();
  if (type == "ByteLevel") {
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return make_byte_level_decoder();
  }
  if (type == "ByteFallback" || type == "Fuse") {
    component.allow_only({"type"});
    if (type == "Fuse") return std::make_unique<Fuse>();
    return std::make_unique<ByteFallback>();
  }
  if (type == "Replace") return std::make_unique<ReplaceDecoder>(read_replacement(component));
  if (type == "Strip") {
    component.allow_only({"type", "content", "start", "stop"});
    std::string character = component.text("content");
    if (to_utf32(character).size() != 1) component.child("content").refuse_value("one character");
    return std::make_unique<StripDecoder>(std::move(character), component.count("start", 0),
                                          component.count("stop", 0));
  }
  if (type == "Sequence") {
    component.allow_only({"type", "decoders"});
    std::vector<std::unique_ptr<Decoder>> steps;
    for (const Component& step : component.children("decoders")) {
      if (step.is_null()) step.refuse_value("a decoder");
      steps.push_back(read_decoder(step));
    }
    return std::make_unique<DecoderSequence>(std::move(steps));
  }
  component.refuse(fmt::format(
      "the decoder \"{}\" is not supported; supported: ByteLevel, ByteFallback, Fuse, Replace, Strip, Sequence",
      printable(type, 60)));
}

}  // namespace tessera::internal
