#include "data/text/token_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "data/text/content_hash.h"
#include "data/text/maker_lock.h"
#include "data/text/squad.h"
#include "data/text/token_store_builder.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// Part of every key. Raise it when the prompt or a label mode changes, or old files would be used as new ones.
constexpr int kVersion = 2;

std::string key_of(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view bytes) {
  return content_name(fmt::format(
      "squad {} file {} tokenizer {} {} rows {} {} mode {} max_length {} eos {} padding {}", kVersion,
      content_name(bytes), tokenizer.content_hash().size(), tokenizer.content_hash(), settings.subset.max_rows,
      settings.subset.is_shuffled ? fmt::format("shuffled {}", settings.subset.seed) : "in order",
      name_of(settings.label_mode), settings.max_length, tokenizer.eos_id().value_or(-1),
      tokenizer.padding_side() == PaddingSide::kLeft ? "left" : "right"));
}

// Sequences of the rows with these numbers; stops at the first error.
void encode_rows(const QaEncoder& encoder, const std::vector<SquadRow>& all, std::span<const std::int64_t> rows,
                 const std::string& origin, std::span<QaSequence> results) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SquadRow& row = all[static_cast<std::size_t>(rows[i])];
    try {
      results[i] = encoder.encode(row);
    } catch (const Error& error) {
      throw error.in_context(fmt::format("{}, row {}{}", origin, rows[i], row.id.empty() ? "" : " (" + row.id + ")"));
    }
  }
}

std::vector<QaSequence> encode_in_threads(const QaEncoder& encoder, const std::vector<SquadRow>& all,
                                          std::span<const std::int64_t> rows, const std::string& origin,
                                          int num_threads) {
  constexpr std::size_t kRowsWorthAThread = 64;
  const std::size_t most = std::clamp<std::size_t>(rows.size() / kRowsWorthAThread, 1, 8);
  const std::size_t wanted = num_threads > 0 ? static_cast<std::size_t>(num_threads)
                                             : std::max<std::size_t>(1, std::thread::hardware_concurrency());
  const std::size_t count = std::min(wanted, most);
  std::vector<QaSequence> results(rows.size());
  std::vector<std::exception_ptr> errors(count);
  // A thread takes the next free share, so that all get done even if the system gives fewer threads than requested.
  std::atomic<std::size_t> next_share = 0;
  const auto work = [&] {
    for (std::size_t i = next_share++; i < count; i = next_share++) {
      const std::size_t begin = rows.size() * i / count, end = rows.size() * (i + 1) / count;
      try {
        encode_rows(encoder, all, rows.subspan(begin, end - begin), origin,
                    std::span(results).subspan(begin, end - begin));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
    } catch (const std::system_error& error) {
      log_debug("tokenising in {} threads, not {}: {}", threads.size() + 1, count, error.what());
    }
    work();
  }
  for (const std::exception_ptr& error : errors) {  // the first in row order, for any number of threads
    if (error) std::rethrow_exception(error);
  }
  return results;
}

std::string make_bytes(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view file_bytes,
                       const std::string& key) {
  const std::string origin = settings.file.string();
  const SquadFile file = parse_squad(file_bytes, origin);
  const std::vector<std::int64_t> rows = rows_of(settings.subset, std::ssize(file.rows));
  const QaEncoder encoder(tokenizer, settings.label_mode, settings.max_length);
  TokenStoreBuilder builder;
  for (const QaSequence& sequence : encode_in_threads(encoder, file.rows, rows, origin, settings.num_threads)) {
    builder.add(sequence.ids, sequence.targets, sequence.is_truncated);
  }
  return builder.bytes(key, std::ssize(file.rows));
}

std::optional<TokenStore> find(const fs::path& cache_file, const std::string& key, bool is_loud) {
  std::string mistake;
  std::optional<TokenStore> found;
  try {
    found = TokenStore::open(cache_file, key, &mistake);
  } catch (const Error& error) {
    mistake = error.what();
  }
  if (!mistake.empty() && is_loud) log_warn("making the cache file {} again: {}", cache_file.string(), mistake);
  return found;
}

// Saves the bytes and maps the file; if that fails, the bytes stay in memory.
TextData keep(std::string bytes, const fs::path& cache_file, const std::string& key) {
  try {
    write_file_atomically(cache_file, bytes);
    if (auto mapped = TokenStore::open(cache_file, key)) return {std::move(*mapped), CacheUse::kMade, cache_file};
  } catch (const Error& error) {
    log_warn("continuing without the text cache: {}", error.what());
  }
  return {TokenStore::of_bytes(std::move(bytes)), CacheUse::kMadeUnkept, {}};
}

void say_what_is_special(const TextDataSettings& settings, const TokenStore& tokens) {
  const TokenCounts& counts = tokens.counts();
  if (settings.subset.max_rows > counts.num_rows) {
    log_warn("{} has {} rows, fewer than the {} requested: all are used", settings.file.string(), counts.num_rows,
             settings.subset.max_rows);
  }
  if (counts.num_rows > 0 && counts.num_counted == 0) {
    log_warn("{}: no token counts for the loss in label mode '{}' with max_length {}: the model cannot learn",
             settings.file.string(), name_of(settings.label_mode), settings.max_length);
  }
  if (counts.num_truncated > 0) {
    log_info("{}: {} of {} rows were cut to max_length {}{}", settings.file.string(), counts.num_truncated,
             counts.num_rows, settings.max_length,
             settings.label_mode == LabelMode::kAnswer ? " (the context, never the answer)" : "");
  }
}

TextData load(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view file_bytes) {
  const std::string key = key_of(settings, tokenizer, file_bytes);
  const auto make = [&] { return make_bytes(settings, tokenizer, file_bytes, key); };
  const auto make_unkept = [&]() -> TextData { return {TokenStore::of_bytes(make()), CacheUse::kMadeUnkept, {}}; };
  if (settings.cache_folder.empty()) return make_unkept();

  const fs::path cache_file = settings.cache_folder / fmt::format("squad-{}.tokens", key);
  if (auto found = find(cache_file, key, true)) return {std::move(*found), CacheUse::kFound, cache_file};
  std::error_code error;
  fs::create_directories(settings.cache_folder, error);
  if (error) {
    log_warn("continuing without the text cache: cannot create the folder {}: {}", settings.cache_folder.string(),
             error.message());
    return make_unkept();
  }
  const MakerLock lock = MakerLock::take(cache_file);
  // Another process may have made it while we waited.
  if (auto found = find(cache_file, key, false)) return {std::move(*found), CacheUse::kFound, cache_file};
  return keep(make(), cache_file, key);
}

}  // namespace

fs::path default_cache_folder(const Environment& environment) {
  if (const auto own = environment.find("TESSERA_CACHE")) return *own;
  if (const auto base = environment.find("XDG_CACHE_HOME"); base && fs::path(*base).is_absolute()) {
    return fs::path(*base) / "tessera";
  }
  if (const auto home = environment.find("HOME"); home && fs::path(*home).is_absolute()) {
    return fs::path(*home) / ".cache" / "tessera";
  }
  return {};
}

TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer) {
  return load_text_data(settings, tokenizer, read_squad_bytes(settings.file));
}

TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view file_bytes) {
  TextData data = load(settings, tokenizer, file_bytes);
  say_what_is_special(settings, data.tokens);
  return data;
}

}  // namespace tessera
