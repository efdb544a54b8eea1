// Reads the directory of a zip archive, including zip64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct ZipRecord {
  std::string name;
  std::uint64_t offset_bytes = 0;  // of its data, from the file's start
  std::uint64_t num_bytes = 0;     // as stored in the file
  bool is_compressed = false;      // torch's are not, except the programs in TorchScript archives
};

// `file` is the whole file; only the directory and the records' headers are read. Every record lies in the file, before
// the directory, overlaps no other and has a unique name. Throws UsageError naming `origin` and the record; encrypted
// and split archives are refused by name.
std::vector<ZipRecord> parse_zip_directory(std::string_view file, const std::string& origin);

}  // namespace tessera
