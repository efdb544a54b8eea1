// For tests: tests/data/images, our own pictures and what Pillow and torchvision make of them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/json.h"
#include "data/images/jpeg.h"

namespace tessera {

inline std::filesystem::path image_test_folder() {
  return std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "images";
}

struct ImageReferences {
  Json index = read_json_file(image_test_folder() / "reference.json");
  std::string bytes = read_file(image_test_folder() / "reference.bin");

  const std::uint8_t* at(const Json& one) const {
    return reinterpret_cast<const std::uint8_t*>(bytes.data()) + one["offset"].get<std::size_t>();
  }
  static std::string jpeg(const Json& one) { return read_file(image_test_folder() / one["file"].get<std::string>()); }
};

// Rows without gaps.
inline std::vector<std::uint8_t> packed(const RgbView& view) {
  std::vector<std::uint8_t> bytes;
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* row = view.pixels + y * view.row_bytes;
    bytes.insert(bytes.end(), row, row + 3 * view.width);
  }
  return bytes;
}

inline int largest_difference(const std::vector<std::uint8_t>& ours, const std::uint8_t* theirs) {
  int largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) largest = std::max(largest, std::abs(int{ours[i]} - int{theirs[i]}));
  return largest;
}

}  // namespace tessera
