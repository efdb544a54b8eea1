#include "core/json_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tessera::internal {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kPunctuation = "{}[]:,";

unsigned char byte_at(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]);
}

struct Token {
  std::size_t begin, end;  // both the text's size at its end
};

// A string with its quotes (or up to the end of the text), one punctuation character, or a run of anything else.
Token next_token(std::string_view text, std::size_t offset) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpace, offset), text.size());
  if (begin == text.size()) return {begin, begin};
  if (kPunctuation.find(text[begin]) != std::string_view::npos) return {begin, begin + 1};
  if (text[begin] != '"') return {begin, std::min(text.find_first_of(" \t\r\n{}[]:,\"", begin), text.size())};
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return {begin, std::min(end + 1, text.size())};
}

Token first_token(std::string_view text) {
  return next_token(text, text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

// What has been read before the mistake: open brackets, and the first characters of the last two tokens ('\0': none).
struct Context {
  std::vector<char> open;
  char last = '\0', before_last = '\0';

  void pass(char first) {
    if (first == '{' || first == '[') open.push_back(first);
    if ((first == '}' || first == ']') && !open.empty()) open.pop_back();
    before_last = last;
    last = first;
  }

  std::string_view expected() const {
    if (open.empty()) return last == '\0' ? "a value" : "the end of the text";
    if (last == ':') return "a value";
    if (open.back() == '[') {
      if (last == '[') return "a value or ']'";
      return last == ',' ? "a value" : "',' or ']'";
    }
    if (last == '{') return "a key in double quotes or '}'";
    if (last == ',') return "a key in double quotes";
    const bool after_key = last == '"' && (before_last == '{' || before_last == ',');
    return after_key ? "':'" : "',' or '}'";
  }
};

// The token in printable form: short, one line, ASCII only.
std::string shown(std::string_view token) {
  constexpr std::size_t kMaxBytes = 24;
  if (token.empty()) return "the end of the text";
  std::string result;
  for (char c : token.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  if (token.size() > kMaxBytes) result += "...";
  return token[0] == '"' ? result : fmt::format("'{}'", result);
}

// The escape of the string at `begin` that covers `offset`, or nothing.
std::string_view escape_around(std::string_view text, std::size_t begin, std::size_t offset) {
  for (std::size_t i = begin + 1; i <= offset && i < text.size();) {
    if (text[i] != '\\') {
      ++i;
      continue;
    }
    const std::size_t size = text.substr(i + 1, 1) == "u" ? 6 : 2;
    if (offset < i + size) return text.substr(i, offset - i + 1);
    i += size;
  }
  return {};
}

JsonMistake explain_string(std::string_view text, Token token, std::size_t offset) {
  if (offset >= text.size()) {
    return {position_of(text, token.begin), "expected '\"' at the end of this string, found the end of the text"};
  }
  const auto mistake = [&](const std::string& message) { return JsonMistake{position_of(text, offset), message}; };
  const unsigned char byte = byte_at(text, offset);
  if (byte == '\n') return mistake("expected '\"' at the end of the string, or \\n inside it, found a line break");
  if (byte < 0x20) return mistake(fmt::format("expected \\u{0:04x} inside a string, found the byte 0x{0:02x}", byte));
  if (const std::string_view escape = escape_around(text, token.begin, offset); !escape.empty()) {
    return mistake(fmt::format("expected an escape such as \\n or \\u00e9, found {}", shown(escape)));
  }
  // A sequence may also be cut short by an ASCII character: then the byte before it is the culprit.
  const std::size_t culprit = byte >= 0x80 ? offset : offset - 1;
  if (byte_at(text, culprit) >= 0x80) {
    return {position_of(text, culprit), fmt::format("expected UTF-8, found the byte 0x{:02x}", byte_at(text, culprit))};
  }
  return mistake("expected the second half of a surrogate pair, \\udc00 to \\udfff");
}

bool looks_like_number(std::string_view token) {
  return token.find_first_of("0123456789") != std::string_view::npos &&
         token.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

}  // namespace

TextPosition position_of(std::string_view text, std::size_t offset) {
  TextPosition position;
  if (text.starts_with(kByteOrderMark)) {  // editors do not count it
    text.remove_prefix(kByteOrderMark.size());
    offset -= std::min(offset, kByteOrderMark.size());
  }
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {  // not the middle of a UTF-8 sequence
      ++position.column;
    }
  }
  return position;
}

std::size_t token_start(std::string_view text, std::size_t number) {
  Token token = first_token(text);
  while (token.begin < text.size()) {
    const bool is_counted = text[token.begin] != ',' && text[token.begin] != ':';
    if (is_counted && number-- == 0) break;
    token = next_token(text, token.end);
  }
  return token.begin;
}

JsonMistake explain_json_mistake(std::string_view text, std::size_t offset) {
  Context context;
  for (Token token = first_token(text);; token = next_token(text, token.end)) {
    const std::string_view word = text.substr(token.begin, token.end - token.begin);
    const bool is_punctuation = !word.empty() && kPunctuation.find(word[0]) != std::string_view::npos;
    const bool is_sound = word.empty() || is_punctuation || Json::accept(word);
    if (is_sound && token.end <= offset && !word.empty()) {
      context.pass(word[0]);
      continue;
    }
    if (!is_sound && word[0] == '"') return explain_string(text, token, offset);
    const bool is_bad_number = !is_sound && looks_like_number(word);
    return {position_of(text, token.begin),
            fmt::format("expected {}, found {}", is_bad_number ? "a number that JSON allows" : context.expected(),
                        shown(word))};
  }
}

}  // namespace tessera::internal
