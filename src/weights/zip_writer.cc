#include "weights/zip_writer.h"

#include "core/crc32.h"

namespace tessera {

namespace {

constexpr std::uint64_t kLongLimit = 0xffffffff, kShortLimit = 0xffff;  // these values mean: see the zip64 part
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kVersionPlain = 20, kVersion64 = 45;
constexpr std::uint64_t kNoDate = 0x21;  // 1 January 1980: the same weights give the same file

std::string number(std::uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string number_or_limit(std::uint64_t value) {
  return number(value < kLongLimit ? value : kLongLimit, 4);
}

// Version, flags, method (stored), time, date, checksum, both sizes: the same in a record's header and in the
// directory.
std::string common_fields(std::uint64_t num_bytes, std::uint32_t checksum, bool is_64) {
  return number(is_64 ? kVersion64 : kVersionPlain, 2) + number(0, 2) + number(0, 2) + number(0, 2) +
         number(kNoDate, 2) + number(checksum, 4) + number_or_limit(num_bytes) + number_or_limit(num_bytes);
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  const Record record{name, bytes.size(), file_.num_written(), crc32(bytes)};
  const bool is_64 = record.num_bytes >= kLongLimit;
  std::string extra;
  if (is_64) extra = number(1, 2) + number(16, 2) + number(record.num_bytes, 8) + number(record.num_bytes, 8);
  // A field of arbitrary length that readers skip moves the data to where it should begin.
  const std::uint64_t begin = record.offset_bytes + 30 + name.size() + extra.size() + 4;
  const std::uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra += "FB" + number(padding, 2) + std::string(padding, 'Z');
  file_.write("PK\x03\x04" + common_fields(record.num_bytes, record.checksum, is_64) + number(name.size(), 2) +
              number(extra.size(), 2) + name + extra);
  file_.write(bytes);
  records_.push_back(record);
}

void ZipWriter::finish() {
  const std::uint64_t begin = file_.num_written();
  for (const Record& record : records_) {
    std::string extra;
    if (record.num_bytes >= kLongLimit) extra += number(record.num_bytes, 8) + number(record.num_bytes, 8);
    if (record.offset_bytes >= kLongLimit) extra += number(record.offset_bytes, 8);
    const bool is_64 = !extra.empty();
    if (is_64) extra = number(1, 2) + number(extra.size(), 2) + extra;
    // Then: comment, disk, internal and external attributes, all unused.
    file_.write("PK\x01\x02" + number(kVersion64, 2) + common_fields(record.num_bytes, record.checksum, is_64) +
                number(record.name.size(), 2) + number(extra.size(), 2) + number(0, 2) + number(0, 2) + number(0, 2) +
                number(0, 4) + number_or_limit(record.offset_bytes) + record.name + extra);
  }
  const std::uint64_t end = file_.num_written(), num_records = records_.size();
  if (end >= kLongLimit || num_records >= kShortLimit) {
    file_.write("PK\x06\x06" + number(44, 8) + number(kVersion64, 2) + number(kVersion64, 2) + number(0, 4) +
                number(0, 4) + number(num_records, 8) + number(num_records, 8) + number(end - begin, 8) +
                number(begin, 8));
    file_.write("PK\x06\x07" + number(0, 4) + number(end, 8) + number(1, 4));
  }
  const std::uint64_t shown = num_records < kShortLimit ? num_records : kShortLimit;
  file_.write("PK\x05\x06" + number(0, 2) + number(0, 2) + number(shown, 2) + number(shown, 2) +
              number_or_limit(end - begin) + number_or_limit(begin) + number(0, 2));
}

}  // namespace tessera
