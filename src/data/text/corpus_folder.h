// The files of a corpus in the cache.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/text/maker_lock.h"
#include "data/text/token_rows.h"

namespace tessera {

class CorpusFolder {
 public:
  // `cache_folder` may be empty: then nothing is found and nothing is kept.
  CorpusFolder(const std::filesystem::path& cache_folder, std::string key);

  const std::filesystem::path& path() const { return path_; }
  // Parts can be written, as far as is known.
  bool keeps() const { return keeps_; }
  // Creates it; a warning says if that fails.
  void create();

  // All parts, if all are there and sound; what they hold is verified when it is read.
  std::optional<std::vector<TokenStore>> open_all() const;
  // Nothing if it is not there; also if it is damaged, with a warning if `is_loud`.
  std::optional<TokenStore> open_part(std::size_t number, bool is_loud = true) const;
  // Nothing while another process makes it.
  std::optional<MakerLock> try_lock(std::size_t number) const;

  // Writes the part and maps it; if that fails, it stays in memory, and with a warning all later ones do.
  TokenStore keep_part(std::size_t number, std::string bytes);
  void write_index(const TokenRows& rows);

  std::string part_key(std::size_t number) const;

 private:
  std::filesystem::path part_file(std::size_t number) const;
  std::filesystem::path index_file() const { return path_ / "index.json"; }
  void stop_keeping(const std::string& reason);

  std::filesystem::path path_;
  std::string key_;
  bool keeps_ = false;
};

}  // namespace tessera
