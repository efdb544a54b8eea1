#include "data/images/crop.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/image_references.h"

namespace tessera {
namespace {

TEST(RandomStream, GivesThePublishedNumbersOfPhilox) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(internal::philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(internal::philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, DependsOnSeedEpochAndItem) {
  const auto first = [](std::uint64_t seed, std::uint32_t epoch, std::uint64_t item) {
    return RandomStream(seed, epoch, item).next_word();
  };
  const std::uint32_t number = first(1, 2, 3);
  EXPECT_EQ(number, first(1, 2, 3));
  EXPECT_NE(number, first(2, 2, 3));
  EXPECT_NE(number, first(1, 3, 3));
  EXPECT_NE(number, first(1, 2, 4));
  EXPECT_NE(number, first(1, 2, 3 + (std::uint64_t{1} << 32)));
  EXPECT_NE(number, first(1 + (std::uint64_t{1} << 32), 2, 3));
}

// The share of our draws below each decile of torchvision's draws. Two samples of 20,000 differ by 0.0195 or more at
// one of these points with a probability below 0.001 (Kolmogorov and Smirnov); the seed is fixed, so the draws never
// change.
TEST(Crop, BoxesHaveTorchvisionsDistribution) {
  const ImageReferences references;
  for (const Json& one : references.index["crop_distribution"]) {
    const ImageSize picture{one["picture"][0].get<int>(), one["picture"][1].get<int>()};
    const int num_draws = one["draws"].get<int>();
    std::vector<PixelBox> boxes;
    for (int i = 0; i < num_draws; ++i) {
      RandomStream random(7, 0, static_cast<std::uint64_t>(i));
      boxes.push_back(training_view(picture, {}, random).source);
    }
    const auto share = [&](auto value, int limit) {
      return static_cast<double>(
                 std::count_if(boxes.begin(), boxes.end(), [&](auto& b) { return value(b) <= limit; })) /
             num_draws;
    };
    const auto compare = [&](const char* name, auto value) {
      for (const Json& point : one["at_most"][name]) {
        EXPECT_NEAR(share(value, point[0].get<int>()), point[1].get<double>(), 0.0195) << name << " " << point.dump();
      }
    };
    compare("width", [](const PixelBox& box) { return box.width; });
    compare("height", [](const PixelBox& box) { return box.height; });
    compare("left", [](const PixelBox& box) { return box.left; });
    compare("top", [](const PixelBox& box) { return box.top; });
    compare("area", [](const PixelBox& box) { return box.width * box.height; });
  }
}

TEST(Crop, HalfOfThePicturesAreMirrored) {
  int num_mirrored = 0;
  for (std::uint64_t item = 0; item < 10'000; ++item) {
    RandomStream random(3, 1, item);
    num_mirrored += training_view({64, 64}, {}, random).mirrored ? 1 : 0;
  }
  EXPECT_NEAR(num_mirrored, 5000, 4 * 50);  // four deviations
}

TEST(Crop, APictureThatNoBoxFitsGivesItsCentre) {
  RandomStream random(0, 0, 0);
  // 8 % of 1 x 10000 at ratio 3/4, the narrowest box that may be drawn, is 24 pixels wide.
  EXPECT_EQ(training_view({1, 10'000}, {}, random).source, (PixelBox{0, 4999, 1, 1}));
  EXPECT_EQ(training_view({10'000, 3}, {}, random).source, (PixelBox{4998, 0, 4, 3}));
}

TEST(Crop, ValidationRoundsHalvesToEvenAsPython) {
  // 333 x 250 becomes 340 x 256; (340 - 224) / 2 = 58. With a crop of 225: 57.5 -> 58, 15.5 -> 16.
  EXPECT_EQ(validation_view({333, 250}, {}).size, (ImageSize{340, 256}));
  EXPECT_EQ(validation_view({333, 250}, {}).window, (PixelBox{58, 16, 224, 224}));
  EXPECT_EQ(validation_view({333, 250}, {.crop_size = 225}).window, (PixelBox{58, 16, 225, 225}));
  EXPECT_EQ(validation_view({333, 250}, {.crop_size = 223}).window, (PixelBox{58, 16, 223, 223}));
}

}  // namespace
}  // namespace tessera
