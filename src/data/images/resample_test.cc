#include "data/images/resample.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "data/images/image_dataset.h"
#include "support/image_references.h"

namespace tessera {
namespace {

std::vector<std::uint8_t> shown(const std::string& jpeg, const View& view) {
  JpegDecoder decoder;
  Resampler resampler;
  decoder.open(jpeg);
  const RgbView pixels = decoder.decode(resampler.prepare(view));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * view.window.width * view.window.height));
  resampler.run(pixels, out.data());
  return out;
}

View view_of(const Json& one, const ImageSize& picture) {
  if (one.contains("resize")) {
    return validation_view(picture, {.crop_size = one["crop"].get<int>(), .resize = one["resize"].get<int>()});
  }
  const Json& box = one["box"];
  const int size = one["size"].get<int>();
  return {{box[0].get<int>(), box[1].get<int>(), box[2].get<int>(), box[3].get<int>()},
          {size, size},
          {0, 0, size, size},
          one["mirrored"].get<bool>()};
}

// Since version 13 Pillow does rows first where the height shrinks more than the width, which changes some bytes by
// one: that difference is allowed.
void expect_equal_to_torchvision(const char* list, std::size_t num_cases) {
  const ImageReferences references;
  ASSERT_EQ(references.index[list].size(), num_cases);
  for (const Json& one : references.index[list]) {
    const std::string jpeg = references.jpeg(one);
    const std::vector<std::uint8_t> out = shown(jpeg, view_of(one, JpegDecoder().open(jpeg)));
    EXPECT_LE(largest_difference(out, references.at(one)), one.value("columns_first", true) ? 0 : 1) << one.dump();
  }
}

TEST(Resample, CropsAreBitEqualToTorchvisions) {
  expect_equal_to_torchvision("training", 39);
}

TEST(Resample, ResizedCentresAreBitEqualToTorchvisions) {
  expect_equal_to_torchvision("validation", 25);
}

TEST(Resample, NormalisedFloatsAreTorchvisionsToRounding) {
  const ImageReferences references;
  for (const Json& one : references.index["normalised"]) {
    const std::string jpeg = references.jpeg(one);
    JpegDecoder decoder;
    Resampler resampler;
    const View view = view_of(one, decoder.open(jpeg));
    const at::Tensor bytes = at::empty({1, 3, 32, 32}, at::kByte, at::MemoryFormat::ChannelsLast);
    resampler.run(decoder.decode(resampler.prepare(view)), bytes.mutable_data_ptr<std::uint8_t>());
    const at::Tensor normalised = normalise(bytes);
    const std::span out(normalised.const_data_ptr<float>(), 3 * 32 * 32);
    std::vector<float> expected(out.size());
    std::memcpy(expected.data(), references.at(one), expected.size() * sizeof(float));
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-6) << one["file"] << " " << i;
  }
}

TEST(Resample, ThePlanOfAWindowIsAPartOfTheWholePlan) {
  for (const auto& [in, out] : {std::pair{500, 256}, {64, 256}, {256, 256}, {1, 256}, {10'000, 256}}) {
    const ResamplePlan whole = plan_resample(in, out, 0, out, false), part = plan_resample(in, out, 16, 224, false);
    EXPECT_LE(part.first + part.size, in);
    for (std::size_t i = 0; i < 224; ++i) {
      ASSERT_EQ(part.begin[i] + part.first, whole.begin[i + 16] + whole.first);
      for (int t = 0; t < part.num_taps; ++t) {
        ASSERT_EQ(part.weights[i * static_cast<std::size_t>(part.num_taps) + static_cast<std::size_t>(t)],
                  whole.weights[(i + 16) * static_cast<std::size_t>(whole.num_taps) + static_cast<std::size_t>(t)]);
      }
    }
  }
}

// Whole, the resized picture of 20,000 x 1 would have 1.3 billion pixels.
TEST(Resample, OfALongThinPictureOnlyTheWindowIsComputed) {
  for (const ImageSize& picture : {ImageSize{20'000, 1}, {1, 65'500}}) {
    Resampler resampler;
    const PixelBox needed = resampler.prepare(validation_view(picture, {}));
    EXPECT_EQ(std::min(needed.width, needed.height), 1);
    EXPECT_LE(std::max(needed.width, needed.height), 3);
  }
}

TEST(Resample, WhiteStaysWhite) {
  const std::vector<std::uint8_t> white(3 * 50 * 40 + 16, 255);
  for (const int size : {1, 7, 40, 224}) {
    Resampler resampler;
    resampler.prepare({{0, 0, 50, 40}, {size, size}, {0, 0, size, size}, false});
    std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * size * size));
    resampler.run(RgbView{white.data(), 150, 50, 40}, out.data());
    EXPECT_EQ(std::count(out.begin(), out.end(), 255), std::ssize(out)) << size;
  }
}

TEST(Resample, PixelsThatWereNotAskedForAreRefused) {
  Resampler resampler;
  resampler.prepare({{0, 0, 50, 40}, {8, 8}, {0, 0, 8, 8}, false});
  std::vector<std::uint8_t> pixels(3 * 50 * 41 + 16), out(3 * 8 * 8);
  EXPECT_THROW(resampler.run(RgbView{pixels.data(), 150, 50, 41}, out.data()), Error);
}

}  // namespace
}  // namespace tessera
