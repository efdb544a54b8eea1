// A zip archive of stored records, laid out as torch.save's: data at multiples of 64 bytes; zip64 where sizes need it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/output_file.h"

namespace tessera {

// Call add() for each record, then finish(); the file must outlive the writer.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  void add(const std::string& name, std::string_view bytes);
  void finish();

 private:
  struct Record {
    std::string name;
    std::uint64_t num_bytes, offset_bytes;
    std::uint32_t checksum;
  };

  OutputFile& file_;
  std::vector<Record> records_;
};

}  // namespace tessera
