#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the original's limit
constexpr std::size_t kLengthBytes = 8;
constexpr const char* kMetadataKey = "__metadata__";

[[noreturn]] void refuse_tensor(const std::string& origin, const std::string& name, const std::string& what) {
  refuse_file(origin, fmt::format("tensor '{}': {}", printable(name), what));
}

std::string_view header_text(std::string_view file, const std::string& origin) {
  // What a clone without git-lfs leaves behind: the most common broken file.
  if (file.starts_with("version https://git-lfs")) {
    refuse_file(origin, "this is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
  }
  if (file.size() < kLengthBytes) {
    refuse_file(origin, fmt::format("not a safetensors file: it has {} bytes, but the header's length alone takes 8",
                                    file.size()));
  }
  const std::uint64_t length = little_endian(file.substr(0, kLengthBytes));
  if (length > kMaxHeaderBytes) {
    if (file.starts_with('{'))
      refuse_file(origin, "this is JSON, not a safetensors file; name the folder that holds it");
    refuse_file(origin, fmt::format("not a safetensors file: its header would take {} bytes, more than the allowed {}",
                                    length, kMaxHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    refuse_file(origin, fmt::format("truncated: the header takes {} bytes, but only {} follow its length", length,
                                    file.size() - kLengthBytes));
  }
  const std::string_view text = file.substr(kLengthBytes, length);
  if (!text.starts_with('{')) refuse_file(origin, "not a safetensors file: the header does not begin with '{'");
  return text;
}

// A size or an offset. NaN is not JSON; fractions, negative numbers and values that do not fit are refused here.
std::int64_t whole_number(const Json& value, const char* what, const std::string& origin, const std::string& name) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    refuse_tensor(origin, name,
                  fmt::format("{} must be a whole number from 0 to 2^63 - 1, found {}", what, printable(value.dump())));
  }
  return static_cast<std::int64_t>(value.get<std::uint64_t>());
}

std::pair<std::int64_t, std::int64_t> data_range(const Json& value, const std::string& origin,
                                                 const std::string& name) {
  if (!value.is_array() || value.size() != 2) {
    refuse_tensor(origin, name, fmt::format("data_offsets must be [begin, end], found {}", printable(value.dump())));
  }
  const std::int64_t begin = whole_number(value[0], "data_offsets", origin, name);
  const std::int64_t end = whole_number(value[1], "data_offsets", origin, name);
  if (end < begin) {
    refuse_tensor(origin, name, fmt::format("data_offsets end at {} before they begin at {}", end, begin));
  }
  return {begin, end};
}

WeightType element_type(const Json& value, const std::string& origin, const std::string& name) {
  const auto type = value.is_string() ? type_of_safetensors_name(value.get_ref<const std::string&>()) : std::nullopt;
  if (!type) {
    refuse_tensor(origin, name,
                  fmt::format("unknown dtype {}; known: {}", printable(value.dump()), safetensors_names()));
  }
  return *type;
}

std::vector<std::int64_t> sizes(const Json& value, const std::string& origin, const std::string& name) {
  if (!value.is_array()) refuse_tensor(origin, name, "shape must be an array");
  std::vector<std::int64_t> shape;
  for (const Json& size : value) shape.push_back(whole_number(size, "each size of shape", origin, name));
  return shape;
}

// The entry with its offset within the data, not yet within the file.
WeightEntry parse_entry(const std::string& name, const Json& value, const std::string& origin) {
  if (!value.is_object()) refuse_tensor(origin, name, "must be an object of dtype, shape and data_offsets");
  for (const auto& [key, member] : value.items()) {
    if (key == "dtype" || key == "shape" || key == "data_offsets") continue;
    refuse_tensor(origin, name, fmt::format("unknown key '{}'; known: dtype, shape, data_offsets", printable(key)));
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) refuse_tensor(origin, name, fmt::format("{} is missing", key));
  }
  WeightEntry entry{name, element_type(value["dtype"], origin, name), sizes(value["shape"], origin, name), {}, 0, 0, 0};
  const auto [begin, end] = data_range(value["data_offsets"], origin, name);
  const auto numel = checked_numel(entry.shape);
  if (!numel || *numel > INT64_MAX / bytes_of(entry.type)) {
    refuse_tensor(origin, name, fmt::format("a shape of {} overflows", shape_text(entry.shape)));
  }
  entry.numel = *numel;
  entry.strides = row_major_strides(entry.shape);
  entry.offset_bytes = begin;
  if (entry.num_bytes() != end - begin) {
    refuse_tensor(
        origin, name,
        fmt::format("{} of shape {} takes {} bytes, but data_offsets [{}, {}] hold {}", safetensors_name(entry.type),
                    shape_text(entry.shape), entry.num_bytes(), begin, end, end - begin));
  }
  return entry;
}

std::map<std::string, std::string> parse_metadata(const Json& value, const std::string& origin) {
  if (!value.is_object()) refuse_file(origin, fmt::format("{} must be an object of strings", kMetadataKey));
  std::map<std::string, std::string> metadata;
  for (const auto& [key, member] : value.items()) {
    if (!member.is_string()) {
      refuse_file(origin, fmt::format("{}: '{}' must be a string, found {}", kMetadataKey, printable(key),
                                      printable(member.dump())));
    }
    metadata.emplace(key, member.get<std::string>());
  }
  return metadata;
}

// The tensors must cover the data exactly; sorts them by their data, with offsets from the file's start.
void place(std::vector<WeightEntry>& entries, std::int64_t data_begin, std::int64_t data_bytes,
           const std::string& origin) {
  std::stable_sort(entries.begin(), entries.end(), [](const WeightEntry& a, const WeightEntry& b) {
    return std::pair(a.offset_bytes, a.num_bytes()) < std::pair(b.offset_bytes, b.num_bytes());
  });
  std::int64_t covered = 0;
  const WeightEntry* last = nullptr;
  for (const WeightEntry& entry : entries) {
    if (entry.offset_bytes < covered) {
      refuse_tensor(origin, entry.name,
                    fmt::format("overlaps tensor '{}': it begins at byte {} of the data, the other ends at {}",
                                printable(last->name), entry.offset_bytes, covered));
    }
    if (entry.offset_bytes > covered) {
      refuse_tensor(
          origin, entry.name,
          fmt::format("begins at byte {} of the data, but the previous tensor ends at {}: {} bytes belong to none",
                      entry.offset_bytes, covered, entry.offset_bytes - covered));
    }
    if (entry.num_bytes() > data_bytes - covered) {
      refuse_tensor(origin, entry.name,
                    fmt::format("ends at byte {} of the data, but the file holds only {}: it is truncated or damaged",
                                entry.offset_bytes + entry.num_bytes(), data_bytes));
    }
    covered += entry.num_bytes();
    last = &entry;
  }
  if (covered != data_bytes) {
    refuse_file(origin, fmt::format("the tensors take {} bytes, but {} follow the header: {} belong to none", covered,
                                    data_bytes, data_bytes - covered));
  }
  for (WeightEntry& entry : entries) entry.offset_bytes += data_begin;
}

}  // namespace

SafetensorsHeader parse_safetensors(std::string_view file, const std::string& origin) {
  const std::string_view text = header_text(file, origin);
  const Json json = parse_json(text, origin + " (header)");
  if (!json.is_object()) refuse_file(origin, "the header must be an object");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata = parse_metadata(value, origin);
    } else {
      header.entries.push_back(parse_entry(name, value, origin));
    }
  }
  const std::size_t data_begin = kLengthBytes + text.size();
  place(header.entries, static_cast<std::int64_t>(data_begin), static_cast<std::int64_t>(file.size() - data_begin),
        origin);
  return header;
}

std::string compose_safetensors_header(const std::vector<WeightEntry>& entries,
                                       const std::map<std::string, std::string>& metadata) {
  // Written piece by piece: adding to an ordered object searches it, and there may be thousands of tensors.
  std::string text = "{";
  if (!metadata.empty()) text += fmt::format("\"{}\":{}", kMetadataKey, Json(metadata).dump());
  std::int64_t offset = 0;
  for (const WeightEntry& entry : entries) {
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", text.size() > 1 ? "," : "",
                        Json(entry.name).dump(), safetensors_name(entry.type), Json(entry.shape).dump(), offset,
                        offset + entry.num_bytes());
    offset += entry.num_bytes();
  }
  text += "}";
  constexpr std::size_t kAlignment = 64;
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  return little_endian(text.size(), kLengthBytes) + text;
}

}  // namespace tessera
