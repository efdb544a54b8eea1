#include "data/images/jpeg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <vector>

// After <cstdio>: jpeglib.h uses FILE without naming it.
#include <jerror.h>
#include <jpeglib.h>

#include "core/error.h"

#ifndef LIBJPEG_TURBO_VERSION
#error "libjpeg-turbo is needed: its jpeg_crop_scanline and jpeg_skip_scanlines leave out what a crop does not show"
#endif

namespace tessera {

namespace {

constexpr const char* kCutOff = "the file is cut off: its data ends before the picture does";
constexpr int kMaxScans = 500;  // encoders write about 10
constexpr std::size_t kReadableBehind = 16;
constexpr std::size_t kKeptBytes = 64 << 20;  // a picture of 22 megapixels; the largest allowed takes eight times that
// libjpeg-turbo treats the edge of what it decodes as the picture's edge when it upsamples the colour channels, which
// spoils the outermost pixel: so this many extra columns are decoded on each side and not shown.
constexpr int kColumnMargin = 4;

std::string kind_of(std::string_view bytes) {
  struct Kind {
    std::string_view start, name;
  };
  constexpr std::array<Kind, 10> kinds = {{{"\x89PNG", "a PNG"},
                                           {"GIF8", "a GIF"},
                                           {"BM", "a BMP"},
                                           {std::string_view("II*\0", 4), "a TIFF"},
                                           {std::string_view("MM\0*", 4), "a TIFF"},
                                           {"P6", "a PPM"},
                                           {"P5", "a PGM"},
                                           {"<", "text in angle brackets (HTML, SVG?)"},
                                           {"version https://git-lfs", "a Git LFS pointer, not the file itself"},
                                           {std::string_view("\0\0\0\fjP", 6), "a JPEG 2000"}}};
  if (bytes.starts_with("RIFF") && bytes.substr(std::min<std::size_t>(bytes.size(), 8)).starts_with("WEBP")) {
    return "a WebP";
  }
  for (const Kind& kind : kinds) {
    if (bytes.starts_with(kind.start)) return std::string(kind.name);
  }
  return "a file of unknown kind";
}

// What Pillow's cmyk2rgb does to one pixel, for bytes as Adobe stores them: 255 - ink.
void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, int width, std::uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const unsigned paper = cmyk[3];  // 255 - black
    for (int channel = 0; channel < 3; ++channel) {
      const unsigned ink = 255u - cmyk[channel];
      const unsigned scaled = ink * paper + 128;
      const unsigned covered = ((scaled >> 8) + scaled) >> 8;  // ink * paper / 255, rounded
      rgb[channel] = static_cast<std::uint8_t>(paper - covered);
    }
  }
}

}  // namespace

// libjpeg reports an error through a function that must not return: it jumps back to the setjmp of the current call. So
// nothing between the two may own anything; buffers and texts live here.
struct JpegDecoder::State {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back;
  std::array<char, JMSG_LENGTH_MAX> message{};
  std::string warning;

  std::int64_t max_pixels = 0;
  bool is_open = false;
  std::vector<std::uint8_t> pixels, cmyk;

  static State& of(j_common_ptr jpeg) { return *static_cast<State*>(jpeg->client_data); }
  static State& of(j_decompress_ptr jpeg) { return *static_cast<State*>(jpeg->client_data); }

  [[noreturn]] static void on_error(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, of(jpeg).message.data());
    std::longjmp(of(jpeg).back, 1);
  }
  // Level -1 is damage; 0 and above is trace output.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    ++jpeg->err->num_warnings;
    if (jpeg->err->num_warnings == 1) jpeg->err->format_message(jpeg, of(jpeg).message.data());
  }
  static boolean on_end_of_data(j_decompress_ptr jpeg) {
    std::snprintf(of(jpeg).message.data(), of(jpeg).message.size(), "%s", kCutOff);
    std::longjmp(of(jpeg).back, 1);
  }
  // Each scan of a progressive file passes over every pixel; a small file can hold thousands of empty scans.
  static void on_progress(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMaxScans) return;
    std::snprintf(of(jpeg).message.data(), of(jpeg).message.size(), "more than %d scans in one picture", kMaxScans);
    std::longjmp(of(jpeg).back, 1);
  }
  static void skip(j_decompress_ptr jpeg, long num_bytes) {
    if (num_bytes <= 0) return;
    if (static_cast<std::size_t>(num_bytes) > jpeg->src->bytes_in_buffer) on_end_of_data(jpeg);
    jpeg->src->next_input_byte += num_bytes;
    jpeg->src->bytes_in_buffer -= static_cast<std::size_t>(num_bytes);
  }

  // Runs `call`, a sequence of libjpeg calls that owns nothing, and turns its jump into an exception.
  template <typename Call>
  void guarded(Call call) {
    if (setjmp(back) != 0) {
      jpeg_abort_decompress(&jpeg);
      is_open = false;
      throw Error(message.data());
    }
    call();
  }
};

JpegDecoder::JpegDecoder(std::int64_t max_pixels) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.max_pixels = max_pixels;
  s.jpeg.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = &State::on_error;
  s.errors.emit_message = &State::on_message;
  s.jpeg.client_data = &s;
  s.guarded([&s] { jpeg_create_decompress(&s.jpeg); });
  s.source.init_source = [](j_decompress_ptr) {};
  s.source.term_source = [](j_decompress_ptr) {};
  s.source.fill_input_buffer = &State::on_end_of_data;
  s.source.skip_input_data = &State::skip;
  s.source.resync_to_restart = jpeg_resync_to_restart;
  s.jpeg.src = &s.source;
  s.progress.progress_monitor = &State::on_progress;
  s.jpeg.progress = &s.progress;
}

JpegDecoder::~JpegDecoder() {
  jpeg_destroy_decompress(&state_->jpeg);
}

int JpegDecoder::num_channels() const {
  return state_->jpeg.num_components;
}

const std::string& JpegDecoder::warning() const {
  return state_->warning;
}

ImageSize JpegDecoder::open(std::string_view bytes) {
  State& s = *state_;
  jpeg_abort_decompress(&s.jpeg);
  s.is_open = false;
  s.warning.clear();
  if (s.pixels.capacity() > kKeptBytes) s.pixels = {};
  if (bytes.empty()) throw Error("the file is empty");
  if (!bytes.starts_with("\xff\xd8\xff")) {
    throw Error(fmt::format("not a JPEG but {}; only JPEG pictures are read", kind_of(bytes)));
  }
  s.errors.num_warnings = 0;
  s.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  s.source.bytes_in_buffer = bytes.size();
  s.guarded([&s] { jpeg_read_header(&s.jpeg, TRUE); });

  const std::int64_t width = s.jpeg.image_width, height = s.jpeg.image_height;
  if (s.jpeg.num_components != 1 && s.jpeg.num_components != 3 && s.jpeg.num_components != 4) {
    throw Error(fmt::format("a JPEG of {} channels (supported: 1 grey, 3 colour, 4 CMYK)", s.jpeg.num_components));
  }
  if (width * height > s.max_pixels) {
    throw Error(fmt::format("{} x {} pixels are more than the limit of {}", width, height, s.max_pixels));
  }
  // Within a scan an end mark cannot occur by chance (a data byte 0xff is followed by 0), so any end mark after the
  // header is real. libjpeg reads ahead to it, so Pillow refuses every file without one.
  const std::string_view scans = bytes.substr(bytes.size() - s.source.bytes_in_buffer);
  if (scans.rfind("\xff\xd9") == std::string_view::npos) throw Error(kCutOff);
  s.is_open = true;
  return {static_cast<int>(width), static_cast<int>(height)};
}

RgbView JpegDecoder::decode(const PixelBox& box) {
  State& s = *state_;
  if (!s.is_open) throw Error("decode() without an open picture");
  jpeg_decompress_struct& jpeg = s.jpeg;
  const int width = static_cast<int>(jpeg.image_width), height = static_cast<int>(jpeg.image_height);
  if (box.left < 0 || box.top < 0 || box.width < 1 || box.height < 1 || box.width > width - box.left ||
      box.height > height - box.top) {
    throw Error(fmt::format("the box {}x{} at {},{} is not within the picture's {}x{}", box.width, box.height, box.left,
                            box.top, width, height));
  }

  const bool is_cmyk = jpeg.num_components == 4;
  jpeg.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  JDIMENSION first_column = static_cast<JDIMENSION>(std::max(0, box.left - kColumnMargin));
  JDIMENSION num_columns =
      static_cast<JDIMENSION>(std::min(width, box.left + box.width + kColumnMargin)) - first_column;
  s.guarded([&] {
    jpeg_start_decompress(&jpeg);
    if (num_columns < jpeg.output_width) jpeg_crop_scanline(&jpeg, &first_column, &num_columns);
  });

  const std::size_t row_bytes = std::size_t{num_columns} * 3;
  s.pixels.resize(row_bytes * static_cast<std::size_t>(box.height) + kReadableBehind);
  if (is_cmyk) s.cmyk.resize(std::size_t{num_columns} * 4);
  s.guarded([&] {
    if (box.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(box.top));
    for (int y = 0; y < box.height; ++y) {
      JSAMPROW rgb = s.pixels.data() + row_bytes * static_cast<std::size_t>(y);
      JSAMPROW row = is_cmyk ? s.cmyk.data() : rgb;
      jpeg_read_scanlines(&jpeg, &row, 1);
      if (is_cmyk) inverted_cmyk_to_rgb(row, static_cast<int>(num_columns), rgb);
    }
    jpeg_abort_decompress(&jpeg);
  });
  s.is_open = false;
  if (s.errors.num_warnings > 0) s.warning = s.message.data();
  const std::size_t offset = (static_cast<std::size_t>(box.left) - first_column) * 3;
  return {s.pixels.data() + offset, static_cast<std::ptrdiff_t>(row_bytes), box.width, box.height};
}

}  // namespace tessera
