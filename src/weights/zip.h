// Zip archives, including zip64: reads their directory, and writes them as torch.save does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"

namespace tessera {

struct ZipRecord {
  std::string name;
  std::uint64_t offset_bytes = 0;  // of its data, from the file's start
  std::uint64_t num_bytes = 0;     // as stored in the file
  bool is_compressed = false;      // torch's are not, except the programs in TorchScript archives
  std::uint32_t checksum = 0;      // CRC-32 of the data; 0 where torch.save was told not to compute it
};

// `file` is the whole file; only the directory and the records' headers are read. Every record lies in the file, before
// the directory, overlaps no other and has a unique name. Throws UsageError naming `origin` and the record; encrypted
// and split archives are refused by name.
std::vector<ZipRecord> parse_zip_directory(std::string_view file, const std::string& origin);
// Reads the record's data. Throws UsageError naming `origin` and the record if its checksum does not fit.
void check_record(const ZipRecord& record, std::string_view file, const std::string& origin);

// Stored records, laid out as torch.save's: data at multiples of 64 bytes; zip64 where sizes need it. Call add() for
// each record, then finish(); the file must outlive the writer.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  void add(const std::string& name, std::string_view bytes);
  void finish();

 private:
  OutputFile& file_;
  std::vector<ZipRecord> records_;  // offsets of headers, not of data
};

}  // namespace tessera
