// Reads the fields of a protocol buffers message one by one, without its schema.
//
//   ProtobufReader reader(bytes, origin);
//   while (const auto field = reader.next()) {
//     if (field->number == 1) use(field->bytes);
//   }
//
// https://protobuf.dev/programming-guides/encoding. Broken messages throw UsageError with the origin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::internal {

class ProtobufReader {
 public:
  // Both must outlive the reader.
  ProtobufReader(std::string_view message, const std::string& origin) : rest_(message), origin_(origin) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;  // of a whole number
    std::string_view bytes;   // of a text or a message; those of a fixed-size number
  };
  std::optional<Field> next();

 private:
  std::uint64_t read_varint();
  std::string_view read_bytes(std::uint64_t count);
  [[noreturn]] void refuse(const std::string& what) const;

  std::string_view rest_;
  const std::string& origin_;
};

}  // namespace tessera::internal
