#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace tessera {

using internal::TextPosition;

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kJsonSpace = " \t\r\n";
constexpr std::string_view kPunctuation = "{}[]:,";
constexpr std::string_view kWordEnds = " \t\r\n{}[]:,\"";

unsigned char byte_at(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]);
}

struct Token {
  std::size_t begin, end;  // both the text's size at its end
};

bool begins_comment(std::string_view text, std::size_t offset, JsonComments comments) {
  const std::string_view next = text.substr(offset, 2);
  return comments == JsonComments::kAllowed && (next == "//" || next == "/*");
}

// Blanks and comments; one that is not closed stays, as a word that no value begins with.
std::size_t skip_space(std::string_view text, std::size_t offset, JsonComments comments) {
  while (true) {
    offset = std::min(text.find_first_not_of(kJsonSpace, offset), text.size());
    if (!begins_comment(text, offset, comments)) return offset;
    const bool is_line = text[offset + 1] == '/';
    const std::size_t end = is_line ? text.find('\n', offset) : text.find("*/", offset + 2);
    if (end == std::string_view::npos && !is_line) return offset;
    offset = end == std::string_view::npos ? text.size() : end + (is_line ? 1 : 2);
  }
}

// A string with its quotes (or up to the end of the text), one punctuation character, or a run of anything else.
Token next_token(std::string_view text, std::size_t offset, JsonComments comments) {
  const std::size_t begin = skip_space(text, offset, comments);
  if (begin == text.size()) return {begin, begin};
  if (kPunctuation.find(text[begin]) != std::string_view::npos) return {begin, begin + 1};
  if (text[begin] != '"') {
    std::size_t end = begin + 1;
    while (end < text.size() && kWordEnds.find(text[end]) == std::string_view::npos &&
           !begins_comment(text, end, comments)) {
      ++end;
    }
    return {begin, end};
  }
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return {begin, std::min(end + 1, text.size())};
}

Token first_token(std::string_view text, JsonComments comments) {
  return next_token(text, text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0, comments);
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
std::string shown_token(std::string_view token) {
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

struct JsonMistake {
  TextPosition at;
  std::string message;
};

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

JsonMistake explain_string(std::string_view text, Token token, std::size_t offset) {
  if (offset >= text.size()) {
    return {position_of(text, token.begin), "expected '\"' at the end of this string, found the end of the text"};
  }
  const auto mistake = [&](const std::string& message) { return JsonMistake{position_of(text, offset), message}; };
  const unsigned char byte = byte_at(text, offset);
  if (byte == '\n') return mistake("expected '\"' at the end of the string, or \\n inside it, found a line break");
  if (byte < 0x20) return mistake(fmt::format("expected \\u{0:04x} inside a string, found the byte 0x{0:02x}", byte));
  if (const std::string_view escape = escape_around(text, token.begin, offset); !escape.empty()) {
    return mistake(fmt::format("expected an escape such as \\n or \\u00e9, found {}", shown_token(escape)));
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

// `offset` is the last byte that the parser read before it gave up, or the text's size when it reached the end. Runs
// only when something is wrong, so it need not be fast.
JsonMistake explain_json_mistake(std::string_view text, std::size_t offset, JsonComments comments) {
  Context context;
  for (Token token = first_token(text, comments);; token = next_token(text, token.end, comments)) {
    const std::string_view word = text.substr(token.begin, token.end - token.begin);
    const bool is_punctuation = !word.empty() && kPunctuation.find(word[0]) != std::string_view::npos;
    const bool is_sound = word.empty() || is_punctuation || Json::accept(word);
    if (is_sound && token.end <= offset && !word.empty()) {
      context.pass(word[0]);
      continue;
    }
    if (!is_sound && word[0] == '"') return explain_string(text, token, offset);
    if (begins_comment(text, token.begin, comments)) {
      return {position_of(text, token.begin), "expected */ at the end of this comment, found the end of the text"};
    }
    const bool is_bad_number = !is_sound && looks_like_number(word);
    return {position_of(text, token.begin),
            fmt::format("expected {}, found {}", is_bad_number ? "a number that JSON allows" : context.expected(),
                        shown_token(word))};
  }
}

// Far beyond any file that people write, far below where nlohmann's recursive copy and dump exhaust the stack.
constexpr std::size_t kMaxDepth = 256;

// Builds the value, refusing what nlohmann's own builder lets pass: duplicate keys and bottomless nesting. It also
// appends members without searching for them first; with that search, which is linear in nlohmann's ordered objects, a
// tokenizer's vocabulary of 250,000 keys would take minutes.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, JsonComments comments) : text_(text), comments_(comments) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Frame& frame = open_.back();
    if (!frame.keys.insert(name).second) {
      return refuse(fmt::format("the key {} appears twice in one object", Json(name).dump()));
    }
    frame.key = std::move(name);
    ++num_tokens_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    // The position counts the characters read, including the end of the text: the last one read is the wrong one.
    mistake_ = explain_json_mistake(text_, position == 0 ? 0 : position - 1, comments_);
    return false;
  }

  Json take() { return std::move(root_); }
  const JsonMistake& mistake() const { return mistake_; }

 private:
  struct Frame {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  // The token that has just been read.
  bool refuse(const std::string& message) {
    mistake_ = {internal::token_position(text_, num_tokens_), message};
    return false;
  }

  bool open(Json container) {
    if (open_.size() == kMaxDepth) {
      return refuse(fmt::format("expected at most {} levels of nesting, found more", kMaxDepth));
    }
    open_.push_back({std::move(container), {}, {}});
    ++num_tokens_;
    return true;
  }

  bool close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(done));
  }

  bool add(Json value) {
    ++num_tokens_;
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = open_.back(); frame.value.is_array()) {
      frame.value.push_back(std::move(value));
    } else {
      static_cast<Json::object_t::Container&>(frame.value.get_ref<Json::object_t&>())
          .emplace_back(std::move(frame.key), std::move(value));
    }
    return true;
  }

  std::string_view text_;
  JsonComments comments_;
  std::size_t num_tokens_ = 0;  // passed, as token_position() counts them
  std::vector<Frame> open_;
  Json root_;
  JsonMistake mistake_;
};

}  // namespace

TextPosition internal::token_position(std::string_view text, std::size_t number) {
  Token token = first_token(text, JsonComments::kAllowed);  // where they are refused there are none up to there
  while (token.begin < text.size()) {
    const bool is_counted = text[token.begin] != ',' && text[token.begin] != ':';
    if (is_counted && number-- == 0) break;
    token = next_token(text, token.end, JsonComments::kAllowed);
  }
  return position_of(text, token.begin);
}

Json parse_json(std::string_view text, const std::string& origin, JsonComments comments) {
  const auto refuse = [&](const JsonMistake& mistake) {
    throw UsageError(fmt::format("{}:{}:{}: {}", origin, mistake.at.line, mistake.at.column, mistake.message));
  };
  // nlohmann takes a NUL for the end of the text and would ignore what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    refuse({position_of(text, nul), "expected text, found a NUL byte"});
  }
  Builder builder(text, comments);
  const bool ignores_comments = comments == JsonComments::kAllowed;
  if (!Json::sax_parse(text, &builder, Json::input_format_t::json, /*strict=*/true, ignores_comments)) {
    refuse(builder.mistake());
  }
  return builder.take();
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera
