#include "listeners/wandb_file.h"

#include <algorithm>

#include "core/crc32.h"
#include "listeners/proto_writer.h"

namespace tessera {

namespace {

constexpr std::uint64_t kBlockBytes = 32768;
constexpr std::uint64_t kHeaderBytes = 7;
enum PartType : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::string file_header() {
  std::string header = ":W&B";
  append_little_endian(header, std::uint16_t{0xBEE1});
  header += '\0';
  return header;
}

void append_part(std::string& bytes, PartType type, std::string_view data) {
  std::string checked(1, type);
  checked += data;
  append_little_endian(bytes, crc32(checked));
  append_little_endian(bytes, static_cast<std::uint16_t>(data.size()));
  bytes += checked;
}

}  // namespace

WandbFile::WandbFile(const std::filesystem::path& path) : file_(path, AppendFile::Mode::kNew) {
  const std::string header = file_header();
  file_.append(header);
  num_bytes_ = header.size();
}

void WandbFile::append(std::string_view record) {
  std::string bytes;
  bool is_first = true;
  do {
    std::uint64_t room = kBlockBytes - (num_bytes_ + bytes.size()) % kBlockBytes;
    if (room < kHeaderBytes) {  // no room for a header: pad with zeros and continue in the next block
      bytes.append(room, '\0');
      room = kBlockBytes;
    }
    const std::string_view data = record.substr(0, std::min<std::uint64_t>(record.size(), room - kHeaderBytes));
    record.remove_prefix(data.size());
    const bool is_last = record.empty();
    append_part(bytes, is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle), data);
    is_first = false;
  } while (!record.empty());
  file_.append(bytes);
  num_bytes_ += bytes.size();
}

}  // namespace tessera
