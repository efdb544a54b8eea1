#include "data/images/jpeg.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

// After <cstdio>: jpeglib.h uses FILE without naming it.
#include <jpeglib.h>

#include "core/error.h"
#include "support/image_references.h"

namespace tessera {
namespace {

std::vector<std::uint8_t> decode(std::string_view jpeg, const PixelBox* box = nullptr) {
  JpegDecoder decoder;
  const ImageSize size = decoder.open(jpeg);
  return packed(decoder.decode(box ? *box : PixelBox{0, 0, size.width, size.height}));
}

std::string refusal_of_jpeg(std::string_view bytes) {
  try {
    decode(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Jpeg, EveryKindGivesThePixelsOfPillow) {
  const ImageReferences references;
  ASSERT_EQ(references.index["decoded"].size(), 13u);
  for (const Json& one : references.index["decoded"]) {
    const std::vector<std::uint8_t> pixels = decode(references.jpeg(one));
    ASSERT_EQ(pixels.size(), 3 * one["width"].get<std::size_t>() * one["height"].get<std::size_t>()) << one["file"];
    EXPECT_EQ(largest_difference(pixels, references.at(one)), 0) << one["file"];
  }
}

enum class Coding { kBaseline, kProgressive, kArithmetic };

// Noise with the colour channels sampled h x v times more coarsely, as Pillow cannot write it.
std::string noise_jpeg(int width, int height, int h, int v, Coding coding) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long num_bytes = 0;
  jpeg_mem_dest(&jpeg, &bytes, &num_bytes);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg.comp_info[0].h_samp_factor = h;
  jpeg.comp_info[0].v_samp_factor = v;
  if (coding == Coding::kProgressive) jpeg_simple_progression(&jpeg);
  jpeg.arith_code = coding == Coding::kArithmetic;
  jpeg_start_compress(&jpeg, TRUE);
  std::mt19937 random(5);
  std::vector<unsigned char> row(static_cast<std::size_t>(3 * width));
  for (int y = 0; y < height; ++y) {
    for (unsigned char& value : row) value = static_cast<unsigned char>(random());
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&jpeg, &rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string jpeg_bytes(reinterpret_cast<char*>(bytes), num_bytes);
  std::free(bytes);
  return jpeg_bytes;
}

// Compares many boxes of a picture with the same regions of the whole.
void expect_boxes_like_the_whole(const std::string& jpeg, const std::string& name) {
  std::mt19937 random(1);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  JpegDecoder decoder;
  const ImageSize size = decoder.open(jpeg);
  const std::vector<std::uint8_t> whole = packed(decoder.decode({0, 0, size.width, size.height}));
  for (int i = 0; i < 200; ++i) {
    PixelBox box{below(size.width), below(size.height), 0, 0};
    box.width = 1 + below(size.width - box.left);
    box.height = 1 + below(size.height - box.top);
    decoder.open(jpeg);
    const std::vector<std::uint8_t> part = packed(decoder.decode(box));
    for (int y = 0; y < box.height; ++y) {
      const auto expected = whole.begin() + 3 * ((box.top + y) * size.width + box.left);
      ASSERT_TRUE(std::equal(expected, expected + 3 * box.width, part.begin() + 3 * y * box.width))
          << name << ": row " << y << " of " << box.width << "x" << box.height << " at " << box.left << "," << box.top;
    }
  }
}

// What libjpeg-turbo skips must not change the rest.
TEST(Jpeg, ABoxHasThePixelsThatTheWholePictureHasThere) {
  const ImageReferences references;
  for (const Json& one : references.index["decoded"]) {
    expect_boxes_like_the_whole(references.jpeg(one), one["file"].get<std::string>());
  }
}

TEST(Jpeg, ABoxOfAnySubsamplingHasThePixelsOfTheWhole) {
  for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}}) {
    for (const Coding coding : {Coding::kBaseline, Coding::kProgressive}) {
      const std::string suffix = coding == Coding::kProgressive ? " progressive" : "";
      expect_boxes_like_the_whole(noise_jpeg(117, 93, h, v, coding),
                                  std::to_string(h) + "x" + std::to_string(v) + suffix);
    }
  }
}

#if defined(C_ARITH_CODING_SUPPORTED) && defined(D_ARITH_CODING_SUPPORTED)
TEST(Jpeg, ArithmeticCodingGivesTheSamePixels) {
  const std::string jpeg = noise_jpeg(50, 40, 2, 2, Coding::kArithmetic);
  EXPECT_NE(jpeg.find("\xff\xc9"), std::string::npos);
  EXPECT_EQ(decode(jpeg), decode(noise_jpeg(50, 40, 2, 2, Coding::kBaseline)));
}
#endif

TEST(Jpeg, AnOrientationTagTurnsNothing) {
  const std::string plain = read_file(image_test_folder() / "colour_422.jpg");
  // One entry: 0x112, orientation, one 16-bit number, 6: rotate by 90 degrees.
  const std::string_view exif(
      "\xff\xe1\0\x22"
      "Exif\0\0"
      "MM\0\x2a\0\0\0\x08"
      "\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0",
      36);
  EXPECT_EQ(decode(plain.substr(0, 2) + std::string(exif) + plain.substr(2)), decode(plain));
}

TEST(Jpeg, MoreThanEightBitsAreRefused) {
  std::string jpeg = read_file(image_test_folder() / "colour_420.jpg");
  jpeg[jpeg.find(std::string_view("\xff\xc0\0", 3)) + 4] = 12;
  EXPECT_NE(refusal_of_jpeg(jpeg).find("precision 12"), std::string::npos) << refusal_of_jpeg(jpeg);
}

TEST(Jpeg, AFileCutAnywhereIsRefused) {
  for (const char* name : {"colour_420.jpg", "progressive.jpg", "cmyk_adobe.jpg"}) {
    const std::string whole = read_file(image_test_folder() / name);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      ASSERT_NE(refusal_of_jpeg(std::string_view(whole).substr(0, size)), "accepted") << name << " cut to " << size;
    }
    EXPECT_NE(refusal_of_jpeg(whole.substr(0, whole.size() - 100)).find("cut off"), std::string::npos);
    EXPECT_EQ(refusal_of_jpeg(whole), "accepted");
  }
}

TEST(Jpeg, ACutIsSeenThoughTheBoxLiesBeforeIt) {
  const std::string whole = read_file(image_test_folder() / "large.jpg");
  const std::string cut = whole.substr(0, whole.size() - 2000);
  const PixelBox corner{0, 0, 8, 8};
  EXPECT_THROW(decode(cut, &corner), Error);
}

TEST(Jpeg, WhatIsNoJpegIsRefusedByTheNameOfWhatItIs) {
  EXPECT_EQ(refusal_of_jpeg(""), "the file is empty");
  EXPECT_NE(refusal_of_jpeg("\x89PNG\r\n\x1a\n").find("a PNG"), std::string::npos);
  EXPECT_NE(refusal_of_jpeg("GIF89a").find("a GIF"), std::string::npos);
  EXPECT_NE(refusal_of_jpeg(std::string("RIFF\1\0\0\0WEBPVP8", 15)).find("a WebP"), std::string::npos);
  EXPECT_NE(refusal_of_jpeg("version https://git-lfs.github.com/spec/v1").find("Git LFS"), std::string::npos);
  EXPECT_NE(refusal_of_jpeg("hello").find("a file of unknown kind"), std::string::npos);
}

TEST(Jpeg, DamageThatLibjpegMendsIsAcceptedWithAWarning) {
  std::string jpeg = read_file(image_test_folder() / "large.jpg");
  jpeg.replace(jpeg.size() / 2, 2, "\xff\xd9");  // the end, too early, inside the data
  JpegDecoder decoder;
  const ImageSize size = decoder.open(jpeg);
  decoder.decode({0, 0, size.width, size.height});
  EXPECT_NE(decoder.warning(), "");
  decoder.open(read_file(image_test_folder() / "grey.jpg"));
  EXPECT_EQ(decoder.warning(), "");
}

TEST(Jpeg, MorePixelsThanAllowedAreRefusedBeforeTheyAreMade) {
  JpegDecoder decoder(64 * 64 - 1);
  const std::string jpeg = read_file(image_test_folder() / "grey.jpg");
  EXPECT_THROW(decoder.open(jpeg), Error);
  EXPECT_THROW(decoder.decode({0, 0, 1, 1}), Error);
  EXPECT_EQ(JpegDecoder(64 * 64).open(jpeg), (ImageSize{64, 64}));
}

TEST(Jpeg, ABoxOutsideThePictureIsRefused) {
  const std::string jpeg = read_file(image_test_folder() / "grey.jpg");
  JpegDecoder decoder;
  for (const PixelBox& box : {PixelBox{0, 0, 65, 1}, {-1, 0, 1, 1}, {64, 0, 1, 1}, {0, 0, 0, 1}, {1, 1, 1, 64}}) {
    decoder.open(jpeg);
    EXPECT_THROW(decoder.decode(box), Error);
  }
}

TEST(Jpeg, ADecoderGoesOnAfterAnError) {
  const std::string jpeg = read_file(image_test_folder() / "colour_420.jpg");
  JpegDecoder decoder;
  EXPECT_THROW(decoder.open(jpeg.substr(0, 300)), Error);
  decoder.open(jpeg);
  EXPECT_EQ(packed(decoder.decode({0, 0, 64, 64})), decode(jpeg));
}

}  // namespace
}  // namespace tessera
