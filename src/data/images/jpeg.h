// JPEG pictures to RGB pixels, as Pillow's `Image.open(file).convert("RGB")` gives them, by libjpeg-turbo.
//
// open() reads the header, decode() the pixels of a box; only what the box needs is transformed. Grey pictures get
// three equal channels; four-channel ones are read as Adobe writes them (inverted, with or without the YCCK transform)
// and converted by Pillow's formula. Orientation tags are not applied, nor does Pillow apply them by itself.
//
// Refused (tessera::Error with the reason; the caller adds the file's name): anything that is not a JPEG, naming what
// it is; more than 8 bits; two channels; no pixels or too many; data that libjpeg cannot continue with; data that ends
// too early, even where the box lies before the end. Damage that libjpeg repairs by guessing is accepted, as Pillow
// accepts it silently, and warning() reports it.
//
// libjpeg's scaled decoding is not used. Measured on enlarged photographs, 1024 x 768 and 2048 x 1536, halved and
// quartered that way before the resize to 224: 14 to 15 % of the bytes differ from Pillow's by more than 1, some by 10.
//
// A decoder is for one thread and is meant to be kept: its buffers are reused (those of a huge picture are released).
// While decoding it holds the box's pixels, 3 bytes each; for a progressive file libjpeg holds the whole picture, 6
// bytes per pixel, whatever the box. Both are bounded by max_pixels: 0.5 and 1 GB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tessera {

struct ImageSize {
  int width = 0;
  int height = 0;
  bool operator==(const ImageSize&) const = default;
};

struct PixelBox {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  bool operator==(const PixelBox&) const = default;
};

// Rows of interleaved R, G, B bytes. At least 16 bytes after the last row may be read (not written).
struct RgbView {
  const std::uint8_t* pixels = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int width = 0;
  int height = 0;
};

class JpegDecoder {
 public:
  // Pillow's limit against small files that claim gigabytes.
  static constexpr std::int64_t kMaxPixels = 178'956'970;

  explicit JpegDecoder(std::int64_t max_pixels = kMaxPixels);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // `bytes`, the whole file, must stay valid until decode() is done.
  ImageSize open(std::string_view bytes);
  int num_channels() const;  // in the file: 1, 3 or 4

  // Call once after each open(). The box lies within the picture. The view is valid until the next open().
  RgbView decode(const PixelBox& box);
  // What libjpeg complained about in this picture and then guessed; empty: nothing.
  const std::string& warning() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
