// A JPEG as a training item and as a validation item: an image or a refusal. The first two bytes choose the crop.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/images/crop.h"
#include "data/images/jpeg.h"
#include "data/images/resample.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view jpeg(reinterpret_cast<const char*>(data) + 2, size - 2);
  constexpr int kSide = 24;
  constexpr std::int64_t kMaxPixels = 256 * 256;  // larger ones only take longer
  const tessera::CropSettings settings{.crop_size = kSide, .resize = 28};
  static tessera::JpegDecoder decoder(kMaxPixels);
  static tessera::Resampler resampler;
  for (const bool training : {false, true}) {
    try {
      tessera::RandomStream random(data[0], 0, data[1]);
      const tessera::ImageSize picture = decoder.open(jpeg);
      const tessera::View view =
          training ? training_view(picture, settings, random) : validation_view(picture, settings);
      std::vector<std::uint8_t> bytes(3 * kSide * kSide);
      resampler.run(decoder.decode(resampler.prepare(view)), bytes.data());
    } catch (const tessera::Error&) {  // a refusal, with its reason
    }
  }
  return 0;
}
