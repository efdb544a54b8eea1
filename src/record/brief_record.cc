#include "record/brief_record.h"

#include <array>
#include <vector>

namespace tessera {
namespace {

// The characters that structure JSON text. A table: most of the time is spent on the characters between them.
constexpr std::array<bool, 256> kIsMark = [] {
  std::array<bool, 256> is_mark{};
  for (const unsigned char mark : {'"', '{', '}', '[', ']', ','}) is_mark[mark] = true;
  return is_mark;
}();

// Copies JSON text and leaves parts out. Any surprise sets is_lost(), and the copy is then worthless.
class BulkCutter {
 public:
  explicit BulkCutter(std::string_view text) : text_(text) {}

  std::string cut(bool keeps_settings) {
    each_member([&](std::string_view key) {
      if (key == "metrics") {
        cut_metrics();
      } else if (key == "settings" && !keeps_settings) {
        cut_value("{}");
      } else if (key == "ranks") {
        each_element([&] {
          each_member([&](std::string_view member) { member == "series" ? cut_value("{}") : skip_value(); });
        });
      } else {
        skip_value();
      }
    });
    if (is_lost_) return std::string(text_);
    result_ += text_.substr(copied_);
    return std::move(result_);
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (here() == ' ' || here() == '\n' || here() == '\r' || here() == '\t') ++at_;
  }

  bool take(char expected) {
    skip_space();
    if (here() != expected) return false;
    ++at_;
    return true;
  }

  std::string_view skip_string() {
    if (!take('"')) return lose();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return lose();
    return text_.substr(begin, at_++ - begin);
  }

  void skip_value() {
    skip_space();
    int depth = 0;
    do {
      while (at_ < text_.size() && !kIsMark[static_cast<unsigned char>(text_[at_])]) ++at_;
      if (at_ == text_.size()) return void(lose());
      if (here() == '"') {
        skip_string();
        if (depth == 0) return;
      } else if (here() == '{' || here() == '[') {
        ++depth, ++at_;
      } else if (here() == ',') {
        if (depth == 0) return;
        ++at_;
      } else {
        if (depth == 0) return;  // the end of what the value stands in
        --depth, ++at_;
      }
    } while (depth > 0 && !is_lost_);
  }

  template <typename Visit>
  void each_member(const Visit& visit) {
    if (!take('{')) return void(lose());
    if (take('}')) return;
    do {
      skip_space();
      const std::string_view key = skip_string();
      if (!take(':')) return void(lose());
      visit(key);
    } while (!is_lost_ && take(','));
    if (!take('}')) lose();
  }

  template <typename Visit>
  void each_element(const Visit& visit) {
    if (!take('[')) return void(lose());
    if (take(']')) return;
    do {
      visit();
    } while (!is_lost_ && take(','));
    if (!take(']')) lose();
  }

  void cut_metrics() {
    std::vector<std::string_view> entries;
    skip_space();
    const std::size_t array = at_ + 1;
    each_element([&] {
      skip_space();
      const std::size_t begin = at_;
      skip_value();
      entries.push_back(text_.substr(begin, at_ - begin));
    });
    if (is_lost_ || entries.size() <= kBriefMetrics) return;
    const std::size_t first_kept = entries.size() - kBriefMetrics;
    std::string evaluation;
    for (std::size_t i = first_kept; i-- > 0 && evaluation.empty();) {
      if (entries[i].find("\"eval_") != std::string_view::npos) evaluation = std::string(entries[i]) + ",";
    }
    replace(array, static_cast<std::size_t>(entries[first_kept].data() - text_.data()), evaluation);
  }

  void cut_value(std::string_view instead) {
    skip_space();
    const std::size_t begin = at_;
    skip_value();
    if (!is_lost_) replace(begin, at_, instead);
  }

  void replace(std::size_t begin, std::size_t end, std::string_view instead) {
    result_ += text_.substr(copied_, begin - copied_);
    result_ += instead;
    copied_ = end;
  }

  std::string_view lose() {
    is_lost_ = true;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0, copied_ = 0;
  bool is_lost_ = false;
  std::string result_;
};

}  // namespace

std::string brief_record(std::string_view text, bool keeps_settings) {
  // Format 1 has no facts: its settings say what they would.
  const bool has_facts = text.find("\"facts\"") != std::string_view::npos;
  return BulkCutter(text).cut(keeps_settings || !has_facts);
}

}  // namespace tessera
