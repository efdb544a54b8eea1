#include "data/text/qa_sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

using Ids = std::vector<std::int32_t>;

// More than any model takes. Mode `padded` fills a row up to max_length: one digit too many must not exhaust the
// memory.
constexpr std::int64_t kLargestMaxLength = 1 << 20;

void append(Ids& ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

// Each position from `first` on predicts the token after it; the last one predicts nothing.
Ids following_tokens(const Ids& ids, std::size_t first) {
  Ids targets(ids.size(), kIgnoredTarget);
  for (std::size_t i = first; i + 1 < ids.size(); ++i) targets[i] = ids[i + 1];
  return targets;
}

}  // namespace

const std::vector<std::string>& label_mode_names() {
  static const std::vector<std::string> names = {"answer", "full", "padded", "separate"};
  return names;
}

LabelMode label_mode_of(const std::string& name) {
  const auto& names = label_mode_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw UsageError(fmt::format("'{}' is not a label mode; the modes are: {}", printable(name), join(names, ", ")));
  }
  return static_cast<LabelMode>(found - names.begin());
}

const std::string& name_of(LabelMode mode) {
  return label_mode_names()[static_cast<std::size_t>(mode)];
}

std::string warning_of(LabelMode mode) {
  if (mode == LabelMode::kPadded) {
    return "label mode 'padded' counts end tokens up to max_length: losses look low because most targets are end "
           "tokens. It exists to reproduce the ZeRO workshop; 'answer' trains better";
  }
  if (mode == LabelMode::kSeparate) {
    return "label mode 'separate' puts the answer's labels over the prompt's tokens: losses stay at 8 to 11, and "
           "the model does not learn to answer. It exists to reproduce the FSDP workshop; 'answer' trains better";
  }
  return {};
}

std::string qa_prompt(const SquadRow& row) {
  return fmt::format("Question: {} Context: {} Answer:", row.question, *row.context);
}

std::string_view qa_answer(const SquadRow& row) {
  return row.answers.empty() ? std::string_view("No Answer") : std::string_view(row.answers.front().text);
}

QaEncoder::QaEncoder(const Tokenizer& tokenizer, LabelMode mode, std::int64_t max_length)
    : tokenizer_(tokenizer), mode_(mode), max_length_(max_length) {
  if (max_length < 1 || max_length > kLargestMaxLength) {
    throw UsageError(fmt::format("max_length is {}; expected 1 to {}", max_length, kLargestMaxLength));
  }
  if (mode == LabelMode::kAnswer || mode == LabelMode::kPadded) {
    const auto end_id = tokenizer.eos_id();
    if (!end_id) {
      throw UsageError(fmt::format(
          "label mode '{}' needs an end token after the text, and the tokenizer names none; set \"eos_token\" in its "
          "tokenizer_config.json",
          name_of(mode)));
    }
    end_id_ = *end_id;
  }
  const Ids plain = tokenizer.encode("a", false), with_specials = tokenizer.encode("a", true);
  const auto found = std::search(with_specials.begin(), with_specials.end(), plain.begin(), plain.end());
  if (found != with_specials.end()) num_behind_ = with_specials.end() - found - std::ssize(plain);
}

QaSequence QaEncoder::encode(const SquadRow& row) const {
  switch (mode_) {
    case LabelMode::kAnswer:
      return encode_answer(row);
    case LabelMode::kSeparate:
      return encode_separate(row);
    default:
      return encode_full(row);
  }
}

Ids QaEncoder::beginning(std::string_view text) const {
  Ids ids = tokenizer_.encode(text);
  ids.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, std::ssize(ids) - num_behind_)));
  return ids;
}

bool QaEncoder::cut(Ids& ids) const {
  const std::int64_t excess = std::ssize(ids) - max_length_;
  if (excess <= 0) return false;
  const std::int64_t end_of_text = std::max(std::ssize(ids) - num_behind_, excess);
  ids.erase(ids.begin() + (end_of_text - excess), ids.begin() + end_of_text);
  return true;
}

QaSequence QaEncoder::encode_answer(const SquadRow& row) const {
  QaSequence sequence;
  Ids answer = tokenizer_.encode(fmt::format(" {}", qa_answer(row)), false);
  answer.push_back(end_id_);
  const std::int64_t num_allowed = max_length_ - std::ssize(answer);
  sequence.ids = beginning(qa_prompt(row));
  if (std::ssize(sequence.ids) > num_allowed) {
    sequence.ids = shortened_prompt(row, num_allowed);
    sequence.is_truncated = true;
  }
  const std::size_t answer_begin = sequence.ids.size();
  append(sequence.ids, answer);
  sequence.targets = following_tokens(sequence.ids, answer_begin == 0 ? 0 : answer_begin - 1);
  return sequence;
}

// The tokens before the context, as many of the context's as fit, and those of " Answer:".
Ids QaEncoder::shortened_prompt(const SquadRow& row, std::int64_t num_allowed) const {
  Ids ids = beginning(fmt::format("Question: {} Context:", row.question));
  const Ids context = tokenizer_.encode(" " + *row.context, false);
  const Ids tail = tokenizer_.encode(" Answer:", false);
  const std::int64_t num_of_context = num_allowed - std::ssize(ids) - std::ssize(tail);
  if (num_of_context < 0) {
    throw UsageError(
        fmt::format("question and answer alone take {} tokens, more than max_length {}, and neither is cut; raise "
                    "--max_length or leave the row out",
                    max_length_ - num_of_context, max_length_));
  }
  ids.insert(ids.end(), context.begin(), context.begin() + std::min(num_of_context, std::ssize(context)));
  append(ids, tail);
  return ids;
}

QaSequence QaEncoder::encode_full(const SquadRow& row) const {
  QaSequence sequence;
  sequence.ids = tokenizer_.encode(fmt::format("{} {}", qa_prompt(row), qa_answer(row)));
  sequence.is_truncated = cut(sequence.ids);
  if (mode_ == LabelMode::kPadded) sequence.ids.resize(static_cast<std::size_t>(max_length_), end_id_);
  sequence.targets = following_tokens(sequence.ids, 0);
  return sequence;
}

QaSequence QaEncoder::encode_separate(const SquadRow& row) const {
  QaSequence sequence;
  sequence.ids = tokenizer_.encode(qa_prompt(row));
  Ids answer = tokenizer_.encode(qa_answer(row));
  const bool prompt_is_cut = cut(sequence.ids), answer_is_cut = cut(answer);
  sequence.is_truncated = prompt_is_cut || answer_is_cut;
  // Label j is at `first + j` of the prompt and is the target of the position before. A label that would fall outside
  // the prompt, on padding, has no position here.
  const std::int64_t length = std::ssize(sequence.ids), num_labels = std::ssize(answer);
  const std::int64_t first = tokenizer_.padding_side() == PaddingSide::kLeft ? length - num_labels : 0;
  sequence.targets.assign(sequence.ids.size(), kIgnoredTarget);
  for (std::int64_t j = 0; j < num_labels; ++j) {
    const std::int64_t position = first + j - 1;
    if (position >= 0 && position < length) sequence.targets[static_cast<std::size_t>(position)] = answer[j];
  }
  return sequence;
}

}  // namespace tessera
