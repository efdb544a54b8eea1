#include "cli/row_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/text.h"

namespace tessera {
namespace {

constexpr std::size_t kLongestPiece = 800;  // bytes of a piece that are shown; of more, beginning and end

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::size_t character_start(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && continues_character(text[at])) --at;
  return at;
}

// The first token of a row counts only where a row before it predicts it.
void uncount_first(EncodedRow& row) {
  if (row.counted.empty()) row.counted.assign(row.ids.size(), true);
  if (!row.counted.empty()) row.counted.front() = false;
}

std::vector<ShownRow> shown_rows_of(const RowSource& source, const Tokenizer& tokenizer, bool rows_are_joined,
                                    std::int64_t num_shown) {
  std::vector<ShownRow> shown;
  const auto stream = open_rows(source.files, source.cutting);
  while (std::ssize(shown) < num_shown) {
    const auto block = stream->next();
    if (!block) break;
    for (const PlacedRow& row : stream->parse(*block)) {
      for (EncodedRow& part : source.encoding.encode(row)) {
        if (std::ssize(shown) == num_shown) return shown;
        if (!rows_are_joined) uncount_first(part);
        std::vector<RowPiece> pieces = pieces_of(part, tokenizer);
        shown.push_back({stream->place_of(*block, row), std::move(part), std::move(pieces)});
      }
    }
  }
  return shown;
}

std::int64_t num_counted_of(const EncodedRow& row) {
  return row.counted.empty() ? std::ssize(row.ids) : std::ranges::count(row.counted, true);
}

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("  {:<22} {}\n", name, value);
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return fmt::format("{:.1f} %",
                     100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(whole, 1)));
}

struct Lengths {
  std::int64_t median = 0, percentile_99 = 0, longest = 0;
};

Lengths lengths_of(const TokenRows& tokens) {
  std::vector<std::int32_t> lengths = tokens.lengths();
  const auto at = [&](double part) -> std::int64_t {
    const auto place = static_cast<std::ptrdiff_t>(std::ceil(part * static_cast<double>(lengths.size()))) - 1;
    const auto middle = lengths.begin() + std::max<std::ptrdiff_t>(place, 0);
    std::ranges::nth_element(lengths, middle);
    return *middle;
  };
  return {at(0.5), at(0.99), tokens.counts().longest};
}

// What training draws: rows, or packed ones.
struct Drawn {
  std::int64_t num_rows = 0, num_tokens = 0;
  double share_empty = 0;  // of the positions of packed rows
};

Drawn drawn_from(const TextRows& rows, std::int64_t max_length) {
  Drawn drawn{.num_rows = rows.size()};
  for (std::int64_t i = 0; i < rows.size(); ++i) drawn.num_tokens += rows.num_tokens(i);
  const auto num_places = static_cast<double>(std::max<std::int64_t>(drawn.num_rows * max_length, 1));
  drawn.share_empty = 1 - static_cast<double>(drawn.num_tokens) / num_places;
  return drawn;
}

bool is_lm(const RowReport& report) {
  return report.job == "lm";
}

std::string source_text(const RowReport& report, const RowSource& source) {
  const TokenCounts& counts = source.tokens.counts();
  const Lengths lengths = lengths_of(source.tokens);
  const std::int64_t max_length = report.settings.data.max_length;
  std::string text = source.name + "\n";
  text += is_lm(report) ? line("documents", fmt::format("{}", counts.num_rows_of_file))
                        : line("rows", fmt::format("{} {}", counts.num_rows_of_file, source.encoding.kind));
  if (counts.num_dropped > 0) {
    text += line("left out",
                 fmt::format("{} ({}): {}", counts.num_dropped, share_text(counts.num_dropped, counts.num_rows_of_file),
                             is_lm(report) ? "they are empty" : "nothing in them counts"));
  }
  const std::int64_t num_kept = counts.num_rows_of_file - counts.num_dropped;
  if (counts.num_rows > num_kept) {
    text += line("cut up",
                 fmt::format("into {} rows, as some are longer than --max_length {}", counts.num_rows, max_length));
  }
  text += line("tokens per row", fmt::format("median {}, 99 % have at most {}, longest {}", lengths.median,
                                             lengths.percentile_99, lengths.longest));
  if (!is_lm(report) && report.settings.rows.packing != Packing::kWrapped && counts.num_rows <= num_kept) {
    text += line("truncated", fmt::format("{} rows ({}), to --max_length {}", counts.num_truncated,
                                          share_text(counts.num_truncated, counts.num_rows), max_length));
  }
  text += line("tokens", fmt::format("{}", counts.num_tokens));
  return text + line("counted for the loss",
                     fmt::format("{} ({})", counts.num_counted, share_text(counts.num_counted, counts.num_tokens)));
}

std::string drawn_text(const RowReport& report, const std::string& what, const TextRows& rows, Packing packing) {
  const Drawn drawn = drawn_from(rows, report.settings.data.max_length);
  const std::string name = is_lm(report) ? "blocks" : "rows";
  if (packing == Packing::kNone) return line(what, fmt::format("{} rows, not packed", drawn.num_rows));
  return line(what, fmt::format("{} {} of at most {} tokens, {:.2f} % of whose positions stay empty", drawn.num_rows,
                                name, report.settings.data.max_length, 100 * drawn.share_empty));
}

// Tokens that training never sees, where they can be told.
std::optional<std::int64_t> num_left_over(const RowReport& report) {
  const RowSettings& rows = report.settings.rows;
  if (!rows.attention_across_documents || report.rows.sources.size() != 1 || report.rows.evaluation)
    return std::nullopt;
  return report.rows.sources.front().tokens.counts().num_tokens -
         drawn_from(report.rows.training, report.settings.data.max_length).num_tokens;
}

// Safe for a terminal, its lines kept.
std::string shown_piece(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& each : lines) each = printable(each, std::numeric_limits<std::size_t>::max());
  const std::string all = join(lines, "\n");
  if (all.size() <= kLongestPiece) return all;
  const std::size_t head = character_start(all, kLongestPiece / 2);
  const std::size_t tail = character_start(all, all.size() - kLongestPiece / 2);
  return fmt::format("{} [... {} bytes ...] {}", all.substr(0, head), tail - head, all.substr(tail));
}

std::string row_text(const ShownRow& row, bool in_colour) {
  std::string about = fmt::format("{} tokens, {} for the loss", row.tokens.ids.size(), num_counted_of(row.tokens));
  if (row.tokens.is_truncated) about += ", the rest is cut off";
  if (row.tokens.is_dropped) about += ": it is left out";
  std::string text = fmt::format("--- {}: {}\n", row.place, about);
  for (const RowPiece& piece : row.pieces) {
    const std::string shown = shown_piece(piece.text);
    if (!piece.counts) {
      text += shown;
    } else {
      text += in_colour ? "\x1b[32m" + shown + "\x1b[0m" : "⟦" + shown + "⟧";
    }
  }
  return text + "\n";
}

Json drawn_json(const RowReport& report, const TextRows& rows) {
  const Drawn drawn = drawn_from(rows, report.settings.data.max_length);
  return {{"rows", drawn.num_rows}, {"tokens", drawn.num_tokens}, {"share_empty", drawn.share_empty}};
}

Json source_json(const RowSource& source) {
  const TokenCounts& counts = source.tokens.counts();
  const Lengths lengths = lengths_of(source.tokens);
  Json files = Json::array();
  for (const auto& file : source.files) files.push_back(file.string());
  return {{"files", std::move(files)},
          {"kind", source.encoding.kind},
          {"rows_of_file", counts.num_rows_of_file},
          {"left_out", counts.num_dropped},
          {"rows", counts.num_rows},
          {"truncated", counts.num_truncated},
          {"median", lengths.median},
          {"percentile_99", lengths.percentile_99},
          {"longest", lengths.longest},
          {"tokens", counts.num_tokens},
          {"counted", counts.num_counted}};
}

}  // namespace

// Where a piece begins in the text is told by decoding all tokens before it: tokens do not decode alone as they do
// together.
std::vector<RowPiece> pieces_of(const EncodedRow& row, const Tokenizer& tokenizer) {
  const std::string whole = tokenizer.decode(row.ids);
  const auto counts = [&](std::size_t i) { return row.counted.empty() || row.counted[i]; };
  std::vector<RowPiece> pieces;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= row.ids.size(); ++i) {
    if (i < row.ids.size() && counts(i) == counts(i - 1)) continue;
    std::size_t end = whole.size();
    if (i < row.ids.size()) {
      const std::string before = tokenizer.decode(std::span(row.ids).first(i));
      end = character_start(whole, static_cast<std::size_t>(std::ranges::mismatch(before, whole).in2 - whole.begin()));
    }
    end = std::max(end, begin);
    pieces.push_back({whole.substr(begin, end - begin), counts(i - 1)});
    begin = end;
  }
  return pieces;
}

RowReport report_on_rows(const std::string& job, const TrainSettings& settings, const RowTokenizer& tokenizer,
                         const Environment& environment, const std::filesystem::path& cache_folder,
                         std::int64_t num_shown) {
  const MakeEncoding encoding = job == "lm" ? lm_encoding : sft_encoding;
  const RowLoading how{.cache_folder = cache_folder, .say = [](const std::string&) {}};
  LoadedRows rows =
      load_rows(settings, tokenizer.tokenizer, encoding(settings, tokenizer, environment), environment, how);
  std::vector<ShownRow> first =
      shown_rows_of(rows.sources.front(), tokenizer.tokenizer, settings.rows.attention_across_documents, num_shown);
  return {job, settings, std::move(rows), std::move(first)};
}

std::string report_text(const RowReport& report, bool in_colour) {
  std::string text;
  for (const RowSource& source : report.rows.sources) text += source_text(report, source);
  const RowSettings& rows = report.settings.rows;
  text += fmt::format("tessera train {} draws\n", report.job);
  text += drawn_text(report, "in an epoch", report.rows.training, rows.packing);
  if (report.rows.evaluation) {
    text += drawn_text(report, "in an evaluation", *report.rows.evaluation, rows.eval_packing);
  }
  if (const auto rest = num_left_over(report)) {
    text += line("left over", fmt::format("{} tokens, which fill no block", *rest));
  }
  if (report.first_rows.empty()) return text;
  text += fmt::format("the first rows as the model reads them; what counts for the loss is {}\n",
                      in_colour ? "\x1b[32mgreen\x1b[0m" : "⟦marked⟧");
  for (const ShownRow& row : report.first_rows) text += row_text(row, in_colour);
  return text;
}

Json report_json(const RowReport& report) {
  Json sources = Json::array(), shown = Json::array();
  for (const RowSource& source : report.rows.sources) sources.push_back(source_json(source));
  for (const ShownRow& row : report.first_rows) {
    Json pieces = Json::array();
    for (const RowPiece& piece : row.pieces) pieces.push_back({{"text", piece.text}, {"counts", piece.counts}});
    shown.push_back({{"place", row.place},
                     {"tokens", row.tokens.ids.size()},
                     {"counted", num_counted_of(row.tokens)},
                     {"pieces", std::move(pieces)}});
  }
  Json json = {{"job", report.job},
               {"max_length", report.settings.data.max_length},
               {"sources", std::move(sources)},
               {"training", drawn_json(report, report.rows.training)}};
  if (report.rows.evaluation) json["evaluation"] = drawn_json(report, *report.rows.evaluation);
  if (const auto rest = num_left_over(report)) json["left_over_tokens"] = *rest;
  json["first_rows"] = std::move(shown);
  return json;
}

}  // namespace tessera
