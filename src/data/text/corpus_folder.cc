#include "data/text/corpus_folder.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "data/text/content_hash.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostIndexedParts = 1'000'000;

// What a killed process wrote of a part. Only for whoever holds the part's lock: it is nobody's then, on any host.
void remove_unfinished(const fs::path& part_file) {
  const std::string beginning = "." + part_file.filename().string() + ".part-";
  std::error_code error;
  for (fs::directory_iterator entry(part_file.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(beginning)) fs::remove(entry->path(), ignored);
  }
}

// The number of parts; nothing if the index is absent or damaged.
std::optional<std::size_t> num_parts_in(const fs::path& index_file) {
  try {
    const std::string text = read_if_possible(index_file);
    if (text.empty()) return std::nullopt;
    const auto number = parse_json(text, index_file.string()).at("parts").get<std::size_t>();
    if (number <= kMostIndexedParts) return number;
  } catch (const std::exception& error) {
    log_debug("ignoring {}: {}", index_file.string(), error.what());
  }
  return std::nullopt;
}

}  // namespace

CorpusFolder::CorpusFolder(const fs::path& cache_folder, std::string key)
    : path_(cache_folder.empty() ? fs::path() : cache_folder / fmt::format("corpus-{}", key)),
      key_(std::move(key)),
      keeps_(!cache_folder.empty()) {}

void CorpusFolder::create() {
  if (!keeps_) return;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) stop_keeping(fmt::format("cannot create the folder {}: {}", path_.string(), error.message()));
}

std::optional<std::vector<TokenStore>> CorpusFolder::open_all() const {
  if (!keeps_) return std::nullopt;
  const auto number = num_parts_in(index_file());
  if (!number) return std::nullopt;
  std::vector<TokenStore> parts;
  for (std::size_t i = 0; i < *number; ++i) {
    auto part = open_part(i, /*is_loud=*/false);
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  return parts;
}

std::optional<TokenStore> CorpusFolder::open_part(std::size_t number, bool is_loud) const {
  if (path_.empty()) return std::nullopt;
  std::string mistake;
  try {
    if (auto part = TokenStore::open(part_file(number), part_key(number), &mistake, Verify::kWhenRead)) return part;
  } catch (const Error& error) {
    mistake = error.what();
  }
  if (!mistake.empty() && is_loud) {
    log_warn("making the cache file {} again: {}", part_file(number).string(), mistake);
  }
  return std::nullopt;
}

std::optional<MakerLock> CorpusFolder::try_lock(std::size_t number) const {
  auto lock = MakerLock::try_take(part_file(number));
  if (!lock) return std::nullopt;
  if (lock->is_exclusive()) remove_unfinished(part_file(number));
  return lock;
}

TokenStore CorpusFolder::keep_part(std::size_t number, std::string bytes) {
  if (keeps_) {
    try {
      write_file_atomically(part_file(number), bytes);
      if (auto part = TokenStore::open(part_file(number), part_key(number))) return std::move(*part);
      stop_keeping(fmt::format("{} does not hold what was written", part_file(number).string()));
    } catch (const Error& error) {
      stop_keeping(error.what());
    }
  }
  return TokenStore::of_bytes(std::move(bytes));
}

void CorpusFolder::write_index(const TokenRows& rows) {
  if (!keeps_ || num_parts_in(index_file()) == rows.parts().size()) return;
  const Json index = {{"parts", rows.parts().size()},
                      {"rows", rows.size()},
                      {"tokens", rows.counts().num_tokens},
                      {"counted", rows.counts().num_counted}};
  try {
    write_file_atomically(index_file(), json_text(index, 2) + "\n");
  } catch (const Error& error) {
    log_warn("the next start looks through the files again: {}", error.what());
  }
}

std::string CorpusFolder::part_key(std::size_t number) const {
  return content_name(fmt::format("{} part {}", key_, number));
}

fs::path CorpusFolder::part_file(std::size_t number) const {
  return path_ / fmt::format("part-{:05}.tokens", number);
}

void CorpusFolder::stop_keeping(const std::string& reason) {
  log_warn("continuing without the text cache: {}", reason);
  keeps_ = false;
}

}  // namespace tessera
