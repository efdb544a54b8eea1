#include "data/text/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace tessera {

namespace {

bool is_first_byte(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// Whether the answer is in the context at its position, which counts characters.
bool is_in_place(const SquadAnswer& answer, const std::string& context) {
  if (answer.start < 0) return true;  // the file has no position
  std::size_t byte = 0;
  for (std::int64_t left = answer.start; byte < context.size(); ++byte) {
    if (is_first_byte(context[byte]) && left-- == 0) break;
  }
  return context.compare(byte, answer.text.size(), answer.text) == 0;
}

double share_avoided(std::int64_t num_tokens, std::int64_t num_places) {
  return num_places == 0 ? 0 : 1 - static_cast<double>(num_tokens) / static_cast<double>(num_places);
}

// How many batches of at most `budget` tokens the rows need, none split: in their order, where a batch ends before the
// row that does not fit.
std::int64_t num_batches_in_order(const std::vector<std::int64_t>& lengths, std::int64_t budget) {
  std::int64_t num_batches = 0, left = -1;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] > budget) {
      throw UsageError(
          fmt::format("row {} has {} tokens, more than the {} of a whole batch, and rows are not split; raise the "
                      "number of tokens per batch or lower max_length",
                      row, lengths[row], budget));
    }
    if (num_batches == 0 || lengths[row] > left) {
      ++num_batches;
      left = budget;
    }
    left -= lengths[row];
  }
  return num_batches;
}

// As few as best-fit finds, longest rows first.
std::int64_t num_batches_tight(std::vector<std::int64_t> lengths, std::int64_t budget) {
  std::sort(lengths.begin(), lengths.end(), std::greater());
  std::multiset<std::int64_t> left;  // of each batch
  for (const std::int64_t length : lengths) {
    const auto fitting = left.lower_bound(length);
    const std::int64_t room = fitting == left.end() ? budget : *fitting;
    if (fitting != left.end()) left.erase(fitting);
    left.insert(room - length);
  }
  return std::ssize(left);
}

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("  {:<22} {}\n", name, value);
}
std::string line(const std::string& name, std::int64_t value) {
  return line(name, std::to_string(value));
}

}  // namespace

SquadSummary summarise(const SquadFile& file) {
  SquadSummary summary;
  summary.form = file.form;
  summary.version = file.version;
  summary.num_rows = std::ssize(file.rows);
  std::set<std::string_view> titles, ids;
  const std::string* last_context = nullptr;
  for (const SquadRow& row : file.rows) {
    titles.insert(row.title);
    if (!row.id.empty() && !ids.insert(row.id).second) ++summary.num_repeated;
    if (row.context.get() != last_context) ++summary.num_contexts;
    last_context = row.context.get();
    summary.num_answers += std::ssize(row.answers);
    if (row.answers.empty()) ++summary.num_unanswered;
    summary.num_misplaced += std::count_if(row.answers.begin(), row.answers.end(), [&](const SquadAnswer& answer) {
      return !is_in_place(answer, *row.context);
    });
  }
  titles.erase("");
  summary.num_articles = std::ssize(titles);
  return summary;
}

TokenSummary summarise(const TokenRows& tokens, std::int64_t max_length, std::int64_t batch_size,
                       std::int64_t batch_tokens) {
  if (batch_size < 1) throw Error(fmt::format("a batch of {} rows is not possible (expected: at least 1)", batch_size));
  TokenSummary summary;
  summary.counts = tokens.counts();
  summary.max_length = max_length;
  summary.batch_size = batch_size;
  summary.batch_tokens = batch_tokens;
  std::vector<std::int64_t> lengths;
  std::int64_t num_places = 0, longest_of_batch = 0;
  for (std::int64_t row = 0; row < tokens.size(); ++row) {
    lengths.push_back(tokens.length(row));
    longest_of_batch = std::max(longest_of_batch, tokens.length(row));
    if ((row + 1) % batch_size == 0 || row + 1 == tokens.size()) {
      num_places += longest_of_batch * (row % batch_size + 1);
      longest_of_batch = 0;
    }
  }
  summary.padding_to_max_length = share_avoided(summary.counts.num_tokens, tokens.size() * max_length);
  summary.padding_to_longest = share_avoided(summary.counts.num_tokens, num_places);
  if (batch_tokens > 0) {
    summary.num_groups_in_order = num_batches_in_order(lengths, batch_tokens);
    summary.num_groups_tight = num_batches_tight(lengths, batch_tokens);
  }
  if (!lengths.empty()) {
    const auto middle = lengths.begin() + std::ssize(lengths) / 2;
    std::nth_element(lengths.begin(), middle, lengths.end());
    summary.median_length = *middle;
  }
  return summary;
}

std::string summary_text(const SquadSummary& s) {
  std::string text = line("form", s.form + (s.version.empty() ? "" : ", version " + s.version));
  text += line("rows", s.num_rows);
  text += line("articles", s.num_articles);
  text += line("contexts", s.num_contexts);
  text += line("answers", s.num_answers);
  text += line("without an answer", s.num_unanswered);
  if (s.num_repeated > 0) {
    text += line("repeated ids", fmt::format("{} rows have the id of an earlier one", s.num_repeated));
  }
  if (s.num_misplaced > 0) {
    text += line("misplaced answers", fmt::format("{} (not in the context where the file says)", s.num_misplaced));
  }
  return text;
}

std::string summary_text(const TokenSummary& s) {
  const TokenCounts& c = s.counts;
  const double mean = c.num_rows == 0 ? 0 : static_cast<double>(c.num_tokens) / static_cast<double>(c.num_rows);
  std::string text = line("rows used", fmt::format("{} of {}", c.num_rows, c.num_rows_of_file));
  text += line("tokens", c.num_tokens);
  text += line("counted for the loss", c.num_counted);
  text += line("tokens per row", fmt::format("mean {:.1f}, median {}, longest {}", mean, s.median_length, c.longest));
  text += line("truncated", fmt::format("{} rows, to max_length {}", c.num_truncated, s.max_length));
  text += line("padding avoided",
               fmt::format("{:.1f} % against padding to max_length, {:.1f} % against padding batches of {} to "
                           "their longest row",
                           100 * s.padding_to_max_length, 100 * s.padding_to_longest, s.batch_size));
  if (s.batch_tokens > 0) {
    const auto filled = [&](std::int64_t groups) {
      return groups == 0 ? 0 : 100 * static_cast<double>(c.num_tokens) / static_cast<double>(groups * s.batch_tokens);
    };
    text +=
        line("batches of tokens", fmt::format("of {}: {} in order ({:.1f} % full), {} packed tightly ({:.1f} % full)",
                                              s.batch_tokens, s.num_groups_in_order, filled(s.num_groups_in_order),
                                              s.num_groups_tight, filled(s.num_groups_tight)));
  }
  return text;
}

Json summary_json(const SquadSummary& s) {
  return {{"form", s.form},
          {"version", s.version},
          {"rows", s.num_rows},
          {"articles", s.num_articles},
          {"contexts", s.num_contexts},
          {"answers", s.num_answers},
          {"without_answer", s.num_unanswered},
          {"repeated_ids", s.num_repeated},
          {"misplaced_answers", s.num_misplaced}};
}

Json summary_json(const TokenSummary& s) {
  Json json = {{"rows", s.counts.num_rows},       {"tokens", s.counts.num_tokens},
               {"counted", s.counts.num_counted}, {"longest", s.counts.longest},
               {"median", s.median_length},       {"truncated", s.counts.num_truncated},
               {"max_length", s.max_length},      {"padding_avoided_to_max_length", s.padding_to_max_length},
               {"batch_size", s.batch_size},      {"padding_avoided_to_longest", s.padding_to_longest}};
  if (s.batch_tokens > 0) {
    json["batch_tokens"] = s.batch_tokens;
    json["batches_in_order"] = s.num_groups_in_order;
    json["batches_tight"] = s.num_groups_tight;
  }
  return json;
}

}  // namespace tessera
