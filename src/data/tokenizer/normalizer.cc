#include "data/tokenizer/normalizer.h"

#include <fmt/format.h>

#include <vector>

#include "data/tokenizer/normal_form.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/replace.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/utf8.h"

namespace tessera::internal {
namespace {

class NormalFormNormalizer : public Normalizer {
 public:
  explicit NormalFormNormalizer(NormalForm form) : form_(form) {}
  void apply(std::string& text) const override { normalize(text, form_); }

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 public:
  void apply(std::string& text) const override {
    std::u32string lower;
    for (const char32_t c : to_utf32(text)) append_lower_case(lower, c);
    text.clear();
    for (const char32_t c : lower) append_utf8(text, c);
  }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text) const override {
    const CharTable& table = CharTable::get();
    std::size_t begin = 0, end = text.size();
    while (left_ && begin < end && (table[utf8_decode(text.data() + begin)] & kSpace) != 0) {
      begin += utf8_length(static_cast<unsigned char>(text[begin]));
    }
    while (right_ && end > begin) {
      const std::size_t last = utf8_previous(text, end);
      if ((table[utf8_decode(text.data() + last)] & kSpace) == 0) break;
      end = last;
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  explicit ReplaceNormalizer(Replacement replacement) : replacement_(std::move(replacement)) {}
  void apply(std::string& text) const override { text = replacement_.apply(text); }

 private:
  Replacement replacement_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, text_);
  }

 private:
  std::string text_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void apply(std::string& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Component& component) {
  if (component.is_null()) return nullptr;
  const std::string type = component.type();
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    component.allow_only({"type"});
    return std::make_unique<NormalFormNormalizer>(NormalForm{type[2] == 'K', type.back() == 'C'});
  }
  if (type == "Lowercase") {
    component.allow_only({"type"});
    return std::make_unique<Lowercase>();
  }
  if (type == "Strip") {
    component.allow_only({"type", "strip_left", "strip_right"});
    return std::make_unique<Strip>(component.flag("strip_left"), component.flag("strip_right"));
  }
  if (type == "Replace") return std::make_unique<ReplaceNormalizer>(read_replacement(component));
  if (type == "Prepend") {
    component.allow_only({"type", "prepend"});
    return std::make_unique<Prepend>(component.text("prepend"));
  }
  if (type == "Sequence") {
    component.allow_only({"type", "normalizers"});
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const Component& step : component.children("normalizers")) {
      if (step.is_null()) step.refuse_value("a normalizer");
      steps.push_back(read_normalizer(step));
    }
    return std::make_unique<NormalizerSequence>(std::move(steps));
  }
  component.refuse(fmt::format(
      "the normalizer \"{}\" is not supported; supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, "
      "Sequence",
      type));
}

}  // namespace tessera::internal
