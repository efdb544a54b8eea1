// Images per second on one thread: decode, crop, resize, normalise. image_bench FOLDER train|val NUM_IMAGES [bytes]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/host.h"
#include "data/images/image_dataset.h"

namespace {

constexpr std::int64_t kBatch = 64;

double images_per_second(const tessera::ImageDataset& images, std::int64_t num_images, bool as_bytes) {
  at::Tensor pixels;
  const auto started = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < num_images; i += kBatch) {
    std::vector<std::int64_t> indices;
    for (std::int64_t k = i; k < std::min(i + kBatch, num_images); ++k) indices.push_back(k % images.size());
    const auto batch = load_images(images, indices, static_cast<std::uint32_t>(i / images.size()));
    if (!as_bytes) pixels = tessera::normalise(batch.images, at::kFloat, std::move(pixels));  // as a run does
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  return static_cast<double>(num_images) / seconds.count();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    fmt::print(stderr, "usage: image_bench FOLDER train|val NUM_IMAGES [bytes]\n");
    return 2;
  }
  tessera::keep_freed_memory();  // as the program does
  // Both modes read the training pictures, as on the Python side.
  const tessera::ImageDataset images(tessera::read_image_folder(argv[1], tessera::ImageSplit::kTrain),
                                     {.augment = std::string(argv[2]) == "train", .seed = 1});
  const std::int64_t num_images = std::atoll(argv[3]);
  const bool as_bytes = argc > 4 && std::string(argv[4]) == "bytes";
  fmt::print("{:.1f}\n", images_per_second(images, num_images, as_bytes));
  return 0;
} catch (const tessera::Error& error) {
  fmt::print(stderr, "image_bench: {}\n", error.what());
  return static_cast<int>(error.status());
}
