#include "weights/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::string_view kLocalMark = "PK\x03\x04", kEntryMark = "PK\x01\x02", kEndMark = "PK\x05\x06",
                           kEnd64Mark = "PK\x06\x06", kLocator64Mark = "PK\x06\x07";
constexpr std::uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint64_t kMaxCommentBytes = 0xffff;
// Marks a 2- or 4-byte field whose value is in the zip64 part.
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
  // Little-endian; the caller has checked that the bytes exist.
  std::uint64_t number(std::uint64_t offset, int num_bytes) const {
    std::uint64_t value = 0;
    for (int i = num_bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(file_[offset + i]);
    return value;
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
    std::sort(sorted.begin(), sorted.end(),
              [](const ZipRecord* a, const ZipRecord* b) { return a->offset_bytes < b->offset_bytes; });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i - 1]->offset_bytes + sorted[i - 1]->num_bytes > sorted[i]->offset_bytes) {
        refuse_record(sorted[i]->name, fmt::format("overlaps record '{}'", printable(sorted[i - 1]->name)));
      }
    }
  }

  std::string_view file_;
  const std::string& origin_;
};

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

std::vector<ZipRecord> parse_zip_directory(std::string_view file, const std::string& origin) {
  return Parser(file, origin).parse();
}

void check_record(const ZipRecord& record, std::string_view file, const std::string& origin) {
  if (record.checksum == 0 || crc32(file.substr(record.offset_bytes, record.num_bytes)) == record.checksum) return;
  refuse_file(origin, fmt::format("damaged: the bytes of record '{}' do not fit its checksum", printable(record.name)));
}

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
