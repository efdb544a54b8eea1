#include "data/tokenizer/protobuf.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tessera::internal {

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const std::uint64_t key = read_varint();
  Field field{.number = key >> 3, .value = 0, .bytes = {}};
  switch (key & 7) {
    case 0:
      field.value = read_varint();
      break;
    case 1:
      field.bytes = read_bytes(8);
      break;
    case 2:
      field.bytes = read_bytes(read_varint());
      break;
    case 5:
      field.bytes = read_bytes(4);
      break;
    default:
      refuse(fmt::format("a field of type {}", key & 7));
  }
  if (field.number == 0) refuse("a field without a number");
  return field;
}

// Seven bits per byte, the lowest first; the highest bit says that more follow.
std::uint64_t ProtobufReader::read_varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(read_bytes(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number of more than 64 bits");
}

std::string_view ProtobufReader::read_bytes(std::uint64_t count) {
  if (count > rest_.size()) refuse("it ends within a field");
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

void ProtobufReader::refuse(const std::string& what) const {
  throw UsageError(fmt::format("{}: not a protocol buffers message: {}", origin_, what));
}

}  // namespace tessera::internal
