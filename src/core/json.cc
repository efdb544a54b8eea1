#include "core/json.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/json_tokens.h"

namespace tessera {

namespace {

// Far beyond any file that people write, far below where nlohmann's recursive copy and dump exhaust the stack.
constexpr std::size_t kMaxDepth = 256;

// Builds the value, refusing what nlohmann's own builder lets pass: duplicate keys and bottomless nesting. It also
// appends members without searching for them first; with that search, which is linear in nlohmann's ordered objects, a
// tokenizer's vocabulary of 250,000 keys would take minutes.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

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
    mistake_ = internal::explain_json_mistake(text_, position == 0 ? 0 : position - 1);
    return false;
  }

  Json take() { return std::move(root_); }
  const internal::JsonMistake& mistake() const { return mistake_; }

 private:
  struct Frame {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  // The token that has just been read.
  bool refuse(const std::string& message) {
    mistake_ = {internal::position_of(text_, internal::token_start(text_, num_tokens_)), message};
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
  std::size_t num_tokens_ = 0;  // passed, of those that internal::token_start() counts
  std::vector<Frame> open_;
  Json root_;
  internal::JsonMistake mistake_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin) {
  const auto refuse = [&](const internal::JsonMistake& mistake) {
    throw UsageError(fmt::format("{}:{}:{}: {}", origin, mistake.at.line, mistake.at.column, mistake.message));
  };
  // nlohmann takes a NUL for the end of the text and would ignore what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    refuse({internal::position_of(text, nul), "expected text, found a NUL byte"});
  }
  Builder builder(text);
  if (!Json::sax_parse(text, &builder)) refuse(builder.mistake());
  return builder.take();
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tessera
