#include "jobs/row_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "core/quantity.h"
#include "core/text.h"
#include "data/loading/mixed_rows.h"
#include "data/loading/text_batches.h"
#include "data/rows/row_files.h"
#include "data/text/corpus.h"
#include "data/text/numpy_permutation.h"
#include "data/text/token_cache.h"
#include "jobs/run_plan.h"
#include "jobs/text_job.h"
#include "jobs/text_model.h"
#include "listeners/console.h"
#include "settings/load.h"
#include "settings/shared.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;
using Paths = std::vector<fs::path>;

// Files are tokenised by all cores of a host: its ranks share them.
int threads_of_rank(const World& world) {
  const int num_cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, num_cores / ranks_of_node(world));
}

// Shown once it takes longer than a moment.
class TokenisingProgress {
 public:
  explicit TokenisingProgress(bool is_shown) : console_(Console::of_process()), is_shown_(is_shown) {}
  ~TokenisingProgress() {
    if (is_shown_) console_.clear_progress();
  }
  TokenisingProgress(const TokenisingProgress&) = delete;
  TokenisingProgress& operator=(const TokenisingProgress&) = delete;

  void show(const CorpusProgress& progress) {
    const double now = steady_seconds();
    if (!is_shown_ || now - last_shown_ < (console_.is_terminal() ? 0.2 : 30.0)) return;
    last_shown_ = now;
    const double seconds = now - begun_;
    const double rate = static_cast<double>(progress.done - progress.found) / std::max(seconds, 1e-9);
    const double left = rate > 0 ? static_cast<double>(progress.total - progress.done) / rate : 0;
    console_.show_progress(fmt::format("tokenising: {} of {}, {:.1f} MB/s, {} left", bytes_text(progress.done),
                                       bytes_text(progress.total), rate / 1e6, duration_text(left)));
  }

 private:
  static std::string bytes_text(std::int64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  }
  static std::string duration_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds);
    return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
  }

  Console console_;
  bool is_shown_;
  double begun_ = steady_seconds(), last_shown_ = begun_;
};

// Of a .txt that is a document; a longer one becomes several, at ends of lines, so that all cores tokenise it.
constexpr std::size_t kDocumentBytes = std::size_t{1} << 20;

class RowLoader {
 public:
  RowLoader(const TrainSettings& settings, const Tokenizer& tokenizer, const ChooseEncoding& choose,
            const Environment& environment, const RowLoading& how)
      : settings_(settings), tokenizer_(tokenizer), choose_(choose), environment_(environment), how_(how) {
    const TextUnit unit = settings.rows.text_unit;
    cutting_.text = unit == TextUnit::kDocument ? RowCutting::Text::kWhole
                    : unit == TextUnit::kLine   ? RowCutting::Text::kLineWithEnd
                                                : RowCutting::Text::kLine;
    if (unit == TextUnit::kDocument) cutting_.block_bytes = kDocumentBytes;
  }

  LoadedRows load() {
    const RowSettings& rows = settings_.rows;
    const TokenRows tokens = rows.mix.empty() ? tokens_of(training_files()) : tokens_of_mix();
    Numbers chosen = rows.mix.empty() ? all_of(tokens) : drawn_;
    std::optional<TextRows> evaluation;
    if (const Paths files = evaluation_files(); !files.empty()) {
      const TokenRows others = tokens_of(files);
      evaluation = packed(others, limited(all_of(others), settings_.data.max_eval_samples, "--max_eval_samples"),
                          rows.eval_packing);
    } else if (rows.validation_percent > 0) {
      // Rounded as datasets rounds train[:5%], halves to the even number.
      const auto num_first =
          static_cast<std::int64_t>(std::nearbyint(rows.validation_percent * static_cast<double>(chosen.size()) / 100));
      const Numbers first(chosen.begin(), chosen.begin() + num_first);
      chosen.erase(chosen.begin(), chosen.begin() + num_first);
      if (first.empty()) {
        throw UsageError(fmt::format("--validation_split_percentage {:g}: of {} rows that is none to evaluate on",
                                     rows.validation_percent, chosen.size()));
      }
      how_.say(fmt::format("the first {} of {} rows are for evaluations (--validation_split_percentage {:g})",
                           num_first, num_first + std::ssize(chosen), rows.validation_percent));
      evaluation =
          packed(tokens, limited(first, settings_.data.max_eval_samples, "--max_eval_samples"), rows.eval_packing);
    }
    TextRows training = packed(
        tokens, limited(std::move(chosen), settings_.data.max_train_samples, "--max_train_samples"), rows.packing);
    return {std::move(training), std::move(evaluation), std::move(sources_)};
  }

 private:
  static std::vector<std::string> names_in(const std::string& list) {
    return texts_of(split(list, ','), [](const std::string& name) { return std::string(trim(name)); });
  }
  Paths training_files() const {
    const RowSettings& rows = settings_.rows;
    std::vector<std::string> names = {rows.dataset_name};
    if (!settings_.data.train_file.empty()) names = names_in(settings_.data.train_file);
    if (!rows.mix.empty()) names = texts_of(parse_mix(rows.mix), [](const auto& each) { return each.file.string(); });
    return find_row_files(names, environment_, rows.train_split);
  }

  // None: nobody named any, or the data set has no such split, in whose place a share of the training rows can stand.
  Paths evaluation_files() const {
    const RowSettings& rows = settings_.rows;
    const std::string& validation = settings_.data.validation_file;
    if (validation.empty() && rows.test_split.empty()) return {};
    const std::vector<std::string> names = validation.empty() ? std::vector{rows.dataset_name} : names_in(validation);
    Paths files;
    try {
      files = find_row_files(names, environment_, rows.test_split);
      if (rows.validation_percent > 0 && files == training_files()) return {};  // their names tell no splits
    } catch (const UsageError&) {
      if (rows.validation_percent == 0) throw;
    }
    const bool is_meant = validation.empty() && rows.test_split == rows.train_split;
    if (!is_meant) refuse_training_files(files, names);
    return files;
  }

  // A folder whose files tell no splits gives all of them for each. Who names a file itself means it.
  void refuse_training_files(const Paths& evaluation, const std::vector<std::string>& names) const {
    const Paths training = training_files();
    for (const fs::path& file : evaluation) {
      const bool is_trained_on = std::ranges::find(training, file) != training.end();
      if (!is_trained_on || std::ranges::find(names, file.string()) != names.end()) continue;
      throw UsageError(
          fmt::format("{}: {} is trained on, and would be what is evaluated, too: name the files of each "
                      "by --train_file and --validation_file",
                      join(names, ", "), file.string()));
    }
  }

  static Numbers all_of(const TokenRows& tokens) {
    Numbers rows(static_cast<std::size_t>(tokens.size()));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    return rows;
  }
  Numbers limited(Numbers rows, std::int64_t most, const char* setting) const {
    if (most == 0) return rows;
    if (most > std::ssize(rows)) how_.say(fmt::format("{} {}: there are only {} rows", setting, most, rows.size()));
    const auto& seed = settings_.data.subset_seed;
    Numbers places = rows_of({most, seed.has_value(), static_cast<std::uint64_t>(seed.value_or(0))}, std::ssize(rows));
    for (std::int64_t& place : places) place = rows[static_cast<std::size_t>(place)];
    return places;
  }

  TextRows packed(const TokenRows& tokens, const Numbers& rows, Packing how) const {
    std::vector<std::int32_t> lengths;
    lengths.reserve(rows.size());
    for (const std::int64_t row : rows) lengths.push_back(static_cast<std::int32_t>(tokens.length(row)));
    const std::int64_t max_length = settings_.data.max_length;
    if (how == Packing::kNone) {
      if (std::ssize(rows) == tokens.size() && std::ranges::is_sorted(rows)) return TextRows(tokens);
      return TextRows(tokens, one_by_one(lengths).of_rows(rows));
    }
    const bool crosses = settings_.rows.attention_across_documents;
    const WrapOptions wrapping = {
        .max_length = max_length, .rows_per_group = crosses ? kRowsPerGroup : 0, .drops_rest = crosses};
    PackedRows bins = how == Packing::kWrapped
                          ? pack_wrapped(lengths, wrapping)
                          : pack_best_fit(lengths, max_length, static_cast<std::uint64_t>(settings_.loop.data_seed));
    // Whole rows count, unless they are single tokens: what counts of them need not be read.
    bins = counted_bins(tokens, std::move(bins).of_rows(rows), {crosses, how != Packing::kWrapped});
    how_.say(fmt::format("packed: {} rows as {} of at most {} tokens, {:.2f} % of whose positions stay empty",
                         rows.size(), bins.size(), max_length, 100 * share_unfilled(bins, max_length)));
    if (bins.size() == 0) {
      throw UsageError(fmt::format("{} rows with {} tokens give no row of {} tokens that can be trained on{}",
                                   rows.size(), std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
                                   max_length, crosses ? ": give a smaller --max_length" : ""));
    }
    return TextRows(tokens, std::move(bins), crosses);
  }
  static PackedRows one_by_one(const std::vector<std::int32_t>& lengths) {
    Numbers offsets(lengths.size() + 1);
    std::iota(offsets.begin(), offsets.end(), std::int64_t{0});
    std::vector<TokenPiece> pieces;
    for (std::size_t i = 0; i < lengths.size(); ++i) pieces.push_back({static_cast<std::int64_t>(i), 0, lengths[i]});
    return {std::move(offsets), std::move(pieces)};
  }

  TokenRows tokens_of(const Paths& files) {
    const RowEncoding encoding = encoding_of(files);
    TokenisingProgress progress(how_.shows_progress);
    CorpusSettings how{.tokenizer_hash = tokenizer_.content_hash(),
                       .encoder = encoding.description + " " + std::to_string(static_cast<int>(cutting_.text)),
                       .cache_folder = how_.cache_folder,
                       .num_threads = how_.num_threads};
    how.on_progress = [&](const CorpusProgress& done) { progress.show(done); };
    TokenRows rows = load_corpus([&] { return open_rows(files, cutting_); }, encoding.encode, how).rows;
    const std::string name = files.size() == 1
                                 ? files.front().string()
                                 : fmt::format("{} and {} more", files.front().string(), files.size() - 1);
    report(name, encoding.kind, rows.counts());
    sources_.push_back({name, files, cutting_, encoding, rows});
    if (how_.check) how_.check(sources_.back());
    return rows;
  }

  RowEncoding encoding_of(const Paths& files) const {
    const std::vector<PlacedRow> first_rows = first_rows_of(files, cutting_);
    try {
      return choose_(first_rows);
    } catch (const Error& error) {
      throw error.in_context(files.front().string());
    }
  }

  TokenRows tokens_of_mix() {
    std::vector<TokenRows> all;
    Numbers sizes;
    std::vector<double> weights;
    for (const WeightedFile& each : parse_mix(settings_.rows.mix)) {
      all.push_back(tokens_of(find_row_files({each.file.string()}, environment_, settings_.rows.train_split)));
      sizes.push_back(all.back().size());
      weights.push_back(each.weight);
    }
    drawn_ = mixed_rows(sizes, weights, static_cast<std::uint64_t>(settings_.loop.data_seed));
    return TokenRows::joined(all);
  }

  void report(const std::string& name, const std::string& kind, const TokenCounts& counts) const {
    std::string text = fmt::format("{}: {}, {} of them with {} tokens, {:.1f} % of which count for the loss", name,
                                   kind, counts.num_rows, counts.num_tokens,
                                   100.0 * static_cast<double>(counts.num_counted) /
                                       static_cast<double>(std::max<std::int64_t>(counts.num_tokens, 1)));
    if (counts.num_truncated > 0) {
      text += fmt::format("; {} were cut to --max_length {}", counts.num_truncated, settings_.data.max_length);
    }
    if (counts.num_dropped > 0) text += fmt::format("; {} were left out: nothing in them counts", counts.num_dropped);
    how_.say(text);
    if (counts.num_rows == 0) {
      throw UsageError(fmt::format("{}: no row is left to train on: {} were left out, as nothing in them counts", name,
                                   counts.num_dropped));
    }
  }

  const TrainSettings& settings_;
  const Tokenizer& tokenizer_;
  const ChooseEncoding& choose_;
  const Environment& environment_;
  const RowLoading& how_;
  RowCutting cutting_;
  std::vector<RowSource> sources_;
  Numbers drawn_;  // of a mix
};

}  // namespace

std::vector<PlacedRow> first_rows_of(const std::vector<fs::path>& files, const RowCutting& cutting) {
  const auto stream = open_rows(files, cutting);
  while (auto block = stream->next()) {
    std::vector<PlacedRow> rows = stream->parse(*block);
    if (!rows.empty()) return rows;
  }
  throw UsageError(fmt::format("{}: there are no rows", files.front().string()));
}

LoadedRows load_rows(const TrainSettings& settings, const Tokenizer& tokenizer, const ChooseEncoding& choose,
                     const Environment& environment, const RowLoading& how) {
  return RowLoader(settings, tokenizer, choose, environment, how).load();
}

std::unique_ptr<OpenJob> open_row_job(World& world, const LoadedTrainSettings& run,
                                      const std::optional<fs::path>& checkpoint, MakeEncoding encoding) {
  TrainSettings settings = run.settings;
  const Environment& environment = run.request.environment;
  OpenedModel model = open_text_model(settings, environment);
  if (checkpoint) model.weights_folder = *checkpoint;
  const ChooseEncoding choose = encoding(settings, {model.tokenizer, model.tokenizer_folder}, environment);
  RowLoading how{.num_threads = threads_of_rank(world),
                 .cache_folder = default_cache_folder(environment),
                 .shows_progress = world.rank() == 0};
  how.say = [&](const std::string& text) {
    if (world.rank() == 0) log_info("{}", text);
  };
  how.check = [&](const RowSource& source) { check_rows(source.tokens, *model.model, source.name); };
  LoadedRows loaded = load_rows(settings, model.tokenizer, choose, environment, how);
  settle(settings, model, loaded.training, world);
  return std::make_unique<TextJob>(world, std::move(settings), std::move(model), std::move(loaded.training),
                                   std::move(loaded.evaluation));
}

}  // namespace tessera
