#include "weights/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/text.h"
#include "weights/weight_entry.h"

namespace tessera {

namespace {

constexpr std::string_view kLocalMark = "PK\x03\x04", kEntryMark = "PK\x01\x02", kEndMark = "PK\x05\x06",
                           kEnd64Mark = "PK\x06\x06", kLocator64Mark = "PK\x06\x07";
constexpr std::uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint64_t kMaxCommentBytes = 0xffff;
// In a field of 2 or 4 bytes: its value is in the zip64 part.
constexpr std::uint64_t kSee64Short = 0xffff, kSee64Long = 0xffffffff;
constexpr std::uint64_t kExtra64 = 0x0001, kFlagEncrypted = 0x1;

class Parser {
 public:
  Parser(std::string_view file, const std::string& origin) : file_(file), origin_(origin) {}

  std::vector<ZipRecord> parse() {
    const Directory directory = find_directory();
    std::vector<ZipRecord> records;
    std::unordered_set<std::string_view> names;
    std::uint64_t at = directory.offset;
    for (std::uint64_t i = 0; i < directory.num_entries; ++i) {
      records.push_back(parse_entry(at, directory));
    }
    if (at != directory.offset + directory.num_bytes) refuse("the directory is longer than its entries");
    for (const ZipRecord& record : records) {
      if (!names.insert(record.name).second) refuse_record(record.name, "occurs twice in the directory");
    }
    refuse_overlaps(records);
    return records;
  }

 private:
  struct Directory {
    std::uint64_t offset = 0, num_bytes = 0, num_entries = 0;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError(fmt::format("{}: broken zip archive: {}", origin_, what));
  }
  [[noreturn]] void refuse_record(std::string_view name, const std::string& what) const {
    refuse(fmt::format("record '{}' {}", printable(name), what));
  }

  bool has(std::uint64_t offset, std::uint64_t num_bytes) const {
    return offset <= file_.size() && num_bytes <= file_.size() - offset;
  }
  bool has_mark(std::uint64_t offset, std::string_view mark) const {
    return has(offset, mark.size()) && file_.substr(offset, mark.size()) == mark;
  }
  // The caller has checked that the bytes exist.
  std::uint64_t number(std::uint64_t offset, int num_bytes) const {
    return little_endian(file_.substr(offset, num_bytes));
  }

  // The end record is the last thing in the file except for a comment, whose length it holds.
  std::uint64_t find_end() const {
    const std::uint64_t size = file_.size();
    for (std::uint64_t comment = 0; comment <= kMaxCommentBytes && comment + kEndBytes <= size; ++comment) {
      const std::uint64_t at = size - kEndBytes - comment;
      if (has_mark(at, kEndMark) && number(at + 20, 2) == comment) return at;
    }
    refuse("the end of its directory is missing; the file is truncated or not a zip archive");
  }

  Directory find_directory() const {
    const std::uint64_t end = find_end();
    if (number(end + 4, 2) != 0 && number(end + 4, 2) != kSee64Short) refuse("it is split over several files");
    Directory directory{number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
    std::uint64_t directory_end = end;
    if (end >= kLocator64Bytes && has_mark(end - kLocator64Bytes, kLocator64Mark)) {
      const std::uint64_t end64 = number(end - kLocator64Bytes + 8, 8);
      if (!has(end64, kEnd64Bytes) || !has_mark(end64, kEnd64Mark))
        refuse("its zip64 end record is not where it should be");
      directory = {number(end64 + 48, 8), number(end64 + 40, 8), number(end64 + 32, 8)};
      directory_end = end64;
    }
    if (directory.offset > directory_end || directory.num_bytes > directory_end - directory.offset) {
      refuse(fmt::format("its directory ({} bytes at {}) is outside the file", directory.num_bytes, directory.offset));
    }
    if (directory.num_entries > directory.num_bytes / kEntryBytes) {
      refuse(
          fmt::format("its directory of {} bytes cannot hold {} entries", directory.num_bytes, directory.num_entries));
    }
    return directory;
  }

  // Reads the entry at `at` and moves `at` past it.
  ZipRecord parse_entry(std::uint64_t& at, const Directory& directory) const {
    const std::uint64_t end = directory.offset + directory.num_bytes;
    if (end - at < kEntryBytes || !has_mark(at, kEntryMark)) refuse(fmt::format("no directory entry at byte {}", at));
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    const std::uint64_t name_bytes = number(at + 28, 2), extra_bytes = number(at + 30, 2),
                        comment_bytes = number(at + 32, 2);
    if (name_bytes + extra_bytes + comment_bytes > end - at - kEntryBytes) {
      refuse(fmt::format("the directory entry at byte {} is longer than the directory", at));
    }
    ZipRecord record{std::string(file_.substr(at + kEntryBytes, name_bytes)), number(at + 42, 4), number(at + 20, 4),
                     method != 0, static_cast<std::uint32_t>(number(at + 16, 4))};
    std::uint64_t unpacked_bytes = number(at + 24, 4);
    read_extra64(at + kEntryBytes + name_bytes, extra_bytes, record, unpacked_bytes);
    if ((flags & kFlagEncrypted) != 0) refuse_record(record.name, "is encrypted");
    if (method == 0 && unpacked_bytes != record.num_bytes) {
      refuse_record(record.name, "is stored, yet has two different sizes");
    }
    find_data(record, directory);
    at += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
    return record;
  }

  // The values that do not fit their own field, in this order: size, packed size, offset.
  void read_extra64(std::uint64_t at, std::uint64_t num_bytes, ZipRecord& record, std::uint64_t& unpacked_bytes) const {
    const std::uint64_t end = at + num_bytes;
    while (end - at >= 4) {
      const std::uint64_t id = number(at, 2), length = number(at + 2, 2);
      at += 4;
      if (length > end - at) refuse_record(record.name, "has an extra field longer than its entry");
      if (id == kExtra64) {
        std::uint64_t left = length, from = at;
        for (std::uint64_t* value : {&unpacked_bytes, &record.num_bytes, &record.offset_bytes}) {
          if (*value != kSee64Long) continue;
          if (left < 8) refuse_record(record.name, "has a zip64 field that is too short");
          *value = number(from, 8);
          from += 8;
          left -= 8;
        }
      }
      at += length;
    }
  }

  // Goes from the record's own header to its data.
  void find_data(ZipRecord& record, const Directory& directory) const {
    const std::uint64_t header = record.offset_bytes;
    if (header > directory.offset || directory.offset - header < kLocalBytes || !has_mark(header, kLocalMark)) {
      refuse_record(record.name, fmt::format("has no header at byte {}, where the directory puts it", header));
    }
    const std::uint64_t name_bytes = number(header + 26, 2), extra_bytes = number(header + 28, 2);
    const std::uint64_t data = header + kLocalBytes + name_bytes + extra_bytes;
    if (data > directory.offset || record.num_bytes > directory.offset - data) {
      refuse_record(record.name, fmt::format("({} bytes at {}) reaches past the end of the records at {}",
                                             record.num_bytes, data, directory.offset));
    }
    if (file_.substr(header + kLocalBytes, name_bytes) != record.name) {
      refuse_record(record.name, "has a different name in its own header");
    }
    record.offset_bytes = data;
  }

  void refuse_overlaps(const std::vector<ZipRecord>& records) const {
    std::vector<const ZipRecord*> sorted;
    for (const ZipRecord& record : records) sorted.push_back(&record);
    std::ranges::sort(sorted, {}, &ZipRecord::offset_bytes);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i - 1]->offset_bytes + sorted[i - 1]->num_bytes > sorted[i]->offset_bytes) {
        refuse_record(sorted[i]->name, fmt::format("overlaps record '{}'", printable(sorted[i - 1]->name)));
      }
    }
  }

  std::string_view file_;
  const std::string& origin_;
};

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kVersionPlain = 20, kVersion64 = 45;
constexpr std::uint64_t kNoDate = 0x21;  // 1 January 1980: the same weights give the same file

std::string number_or_limit(std::uint64_t value) {
  return little_endian(std::min(value, kSee64Long), 4);
}

// The zip64 part of a header or entry: the values that do not fit their own field, if there are any.
std::string extra64(const std::vector<std::uint64_t>& values) {
  if (values.empty()) return "";
  std::string text = little_endian(kExtra64, 2) + little_endian(8 * values.size(), 2);
  for (const std::uint64_t value : values) text += little_endian(value, 8);
  return text;
}

// Version, flags, method (stored), time, date, checksum, both sizes: the same in a record's header and in the
// directory.
std::string common_fields(const ZipRecord& record, bool is_64) {
  return little_endian(is_64 ? kVersion64 : kVersionPlain, 2) + std::string(6, '\0') + little_endian(kNoDate, 2) +
         little_endian(record.checksum, 4) + number_or_limit(record.num_bytes) + number_or_limit(record.num_bytes);
}

}  // namespace

std::vector<ZipRecord> parse_zip_directory(std::string_view file, const std::string& origin) {
  return Parser(file, origin).parse();
}

void check_record(const ZipRecord& record, std::string_view file, const std::string& origin) {
  if (record.checksum == 0 || crc32(file.substr(record.offset_bytes, record.num_bytes)) == record.checksum) return;
  refuse_file(origin, fmt::format("damaged: the bytes of record '{}' do not fit its checksum", printable(record.name)));
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  ZipRecord record{name, file_.num_written(), bytes.size(), false, crc32(bytes)};
  const bool is_64 = record.num_bytes >= kSee64Long;
  std::string extra = is_64 ? extra64({record.num_bytes, record.num_bytes}) : "";
  // A field of arbitrary length that readers skip moves the data to where it should begin.
  const std::uint64_t begin = record.offset_bytes + kLocalBytes + name.size() + extra.size() + 4;
  const std::uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra += "FB" + little_endian(padding, 2) + std::string(padding, 'Z');
  file_.write(std::string(kLocalMark) + common_fields(record, is_64) + little_endian(name.size(), 2) +
              little_endian(extra.size(), 2) + name + extra);
  file_.write(bytes);
  records_.push_back(std::move(record));
}

void ZipWriter::finish() {
  const std::uint64_t begin = file_.num_written();
  for (const ZipRecord& record : records_) {
    std::vector<std::uint64_t> large;
    if (record.num_bytes >= kSee64Long) large = {record.num_bytes, record.num_bytes};
    if (record.offset_bytes >= kSee64Long) large.push_back(record.offset_bytes);
    const std::string extra = extra64(large);
    // Then: comment, disk, internal and external attributes, all unused.
    file_.write(std::string(kEntryMark) + little_endian(kVersion64, 2) + common_fields(record, !extra.empty()) +
                little_endian(record.name.size(), 2) + little_endian(extra.size(), 2) + std::string(10, '\0') +
                number_or_limit(record.offset_bytes) + record.name + extra);
  }
  const std::uint64_t end = file_.num_written(), num_records = records_.size();
  if (end >= kSee64Long || num_records >= kSee64Short) {
    file_.write(std::string(kEnd64Mark) + little_endian(kEnd64Bytes - 12, 8) + little_endian(kVersion64, 2) +
                little_endian(kVersion64, 2) + std::string(8, '\0') + little_endian(num_records, 8) +
                little_endian(num_records, 8) + little_endian(end - begin, 8) + little_endian(begin, 8));
    file_.write(std::string(kLocator64Mark) + std::string(4, '\0') + little_endian(end, 8) + little_endian(1, 4));
  }
  const std::string shown = little_endian(std::min(num_records, kSee64Short), 2);
  file_.write(std::string(kEndMark) + std::string(4, '\0') + shown + shown + number_or_limit(end - begin) +
              number_or_limit(begin) + std::string(2, '\0'));
}

}  // namespace tessera
