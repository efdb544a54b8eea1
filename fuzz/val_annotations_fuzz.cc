// val_annotations.txt of a folder of three pictures in two classes: each picture once, or a refusal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/images/image_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> classes = {"n01", "n02"}, files = {"a", "b.JPEG", "c d.jpg"};
  try {
    const auto items =
        tessera::parse_val_annotations({reinterpret_cast<const char*>(data), size}, "fuzz", classes, files, "images");
    std::set<std::string> paths;
    for (const tessera::ImageItem& item : items) {
      if (item.label < 0 || item.label > 1) std::abort();
      paths.insert(item.path);
    }
    if (paths != std::set<std::string>{"images/a", "images/b.JPEG", "images/c d.jpg"}) std::abort();
    if (items.size() != files.size()) std::abort();
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
