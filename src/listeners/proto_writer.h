// Writes Protocol Buffers messages field by field: the few that event files need do not justify a .proto compiler.
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// `number`, little-endian, appended to `bytes`: what fixed fields and records of event files consist of.
template <typename Unsigned>
void append_little_endian(std::string& bytes, Unsigned number) {
  for (std::size_t i = 0; i < sizeof(number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
}

class ProtoWriter {
 public:
  // A zero is not written: an absent plain field means zero.
  ProtoWriter& integer(int field, std::int64_t value) {
    if (value == 0) return *this;
    tag(field, kVarint);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  ProtoWriter& real(int field, double value) {
    tag(field, kFixed64);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  ProtoWriter& single(int field, float value) {
    tag(field, kFixed32);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  ProtoWriter& text(int field, std::string_view value) {
    tag(field, kLength);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoWriter& message(int field, const ProtoWriter& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

  void tag(int field, WireType type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tessera
