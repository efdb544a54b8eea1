#include "data/text/corpus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "data/text/content_hash.h"
#include "data/text/corpus_folder.h"
#include "data/text/corpus_maker.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

// Part of every key. Raise it when the division into parts changes.
constexpr int kCorpusVersion = 1;

// Of files this process may map at a time, 65,530 by default, a corpus uses at most so many.
constexpr std::int64_t kMostParts = 8192;

// Hashed at every start: some 20 ms where the files are in memory.
constexpr std::int64_t kHashedBytes = std::int64_t{64} << 20;

[[noreturn]] void fail_to_read(const fs::path& file, int error) {
  throw UsageError(fmt::format("cannot read {}: {}", file.string(), std::generic_category().message(error)));
}

struct OpenedFile {
  Fd descriptor;
  struct stat facts {};
};

OpenedFile open_file(const fs::path& file) {
  OpenedFile opened{Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC))};
  if (!opened.descriptor || ::fstat(opened.descriptor.get(), &opened.facts) != 0) fail_to_read(file, errno);
  return opened;
}

// Less than asked for at the file's end.
std::string read_piece(const fs::path& file, const Fd& descriptor, std::int64_t begin, std::int64_t num_bytes) {
  std::string bytes(static_cast<std::size_t>(num_bytes), '\0');
  std::size_t num_read = 0;
  while (num_read < bytes.size()) {
    const ssize_t count = ::pread(descriptor.get(), bytes.data() + num_read, bytes.size() - num_read,
                                  static_cast<off_t>(begin) + static_cast<off_t>(num_read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_to_read(file, errno);
    if (count == 0) break;
    num_read += static_cast<std::size_t>(count);
  }
  bytes.resize(num_read);
  return bytes;
}

std::string key_of(const std::string& files_name, const CorpusSettings& settings, std::int64_t part_bytes) {
  return content_name(fmt::format("corpus {} files {} tokenizer {} {} encoder {} {} part {}", kCorpusVersion,
                                  files_name, settings.tokenizer_hash.size(), settings.tokenizer_hash,
                                  settings.encoder.size(), settings.encoder, part_bytes));
}

}  // namespace

std::string name_of_files(const std::vector<fs::path>& files) {
  std::int64_t num_bytes = 0;
  for (const fs::path& file : files) num_bytes += open_file(file).facts.st_size;
  const bool takes_all = num_bytes <= kHashedBytes;
  const std::int64_t at_each_end =
      std::clamp<std::int64_t>(kHashedBytes / std::max<std::int64_t>(1, 2 * std::ssize(files)), 4096, 1 << 20);
  std::string names;
  for (const fs::path& file : files) {
    const auto [descriptor, facts] = open_file(file);
    // The endings decide how a file is read: "train.jsonl.gz".
    const std::string name = file.filename().string();
    names += fmt::format("{} {};", name.substr(std::min(name.find('.'), name.size())), facts.st_size);
    if (takes_all) {
      names += content_name(read_piece(file, descriptor, 0, facts.st_size));
      continue;
    }
    std::error_code error;
    const std::string path = fs::weakly_canonical(file, error).string();
    const std::int64_t last = std::max<std::int64_t>(0, facts.st_size - at_each_end);
    names += fmt::format("{} {} {}.{:09} {} {};", path.size(), path, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec,
                         content_name(read_piece(file, descriptor, 0, at_each_end)),
                         content_name(read_piece(file, descriptor, last, at_each_end)));
  }
  return content_name(names);
}

Corpus load_corpus(const OpenStream& open, const EncodeRow& encode, const CorpusSettings& settings) {
  std::unique_ptr<RowStream> stream = open();
  const std::int64_t part_bytes = std::max(settings.part_bytes, stream->num_bytes() / kMostParts);
  const std::string files_name = settings.cache_folder.empty() ? "" : name_of_files(stream->files());
  CorpusFolder folder(settings.cache_folder, key_of(files_name, settings, part_bytes));
  if (auto parts = folder.open_all()) return {TokenRows(std::move(*parts)), folder.path(), 0};
  folder.create();
  CorpusMaker maker(folder, open, encode, settings, {.part_bytes = part_bytes, .files_name = files_name});
  const TokenRows rows(maker.make(std::move(stream)));
  folder.write_index(rows);
  return {rows, folder.keeps() ? folder.path() : fs::path(), maker.num_made()};
}

}  // namespace tessera
