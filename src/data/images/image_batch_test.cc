#include "data/images/image_batch.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/image_references.h"

namespace tessera {
namespace {

ImageDataset dataset(bool augment) {
  ImageFolder folder;
  folder.root = image_test_folder();
  folder.classes = {"one", "two", "three"};
  for (const char* name : {"colour_420.jpg", "grey.jpg", "large.jpg", "tall.jpg", "ycck.jpg"}) {
    folder.items.push_back({name, std::ssize(folder.items) % 3});
  }
  return ImageDataset(std::move(folder), {.augment = augment, .seed = 3, .crop = {.crop_size = 32, .resize = 36}});
}

TEST(ImageBatch, IsTheImagesOfItsIndicesChannelsLast) {
  const ImageDataset images = dataset(true);
  const std::vector<std::int64_t> indices = {3, 0, 3};
  const ImageBatch batch = load_images(images, indices, 1);
  EXPECT_EQ(batch.images.sizes().vec(), (std::vector<std::int64_t>{3, 3, 32, 32}));
  EXPECT_TRUE(batch.images.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batch.labels[0].item<std::int64_t>(), 0);
  EXPECT_TRUE(batch.images[0].equal(batch.images[2]));
  std::vector<float> alone(images.num_values());
  images.load(0, 1, alone.data());
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ((batch.images[1][c][17][5].item<float>()), alone[static_cast<std::size_t>((17 * 32 + 5) * 3 + c)]);
  }
}

TEST(ImageBatch, TheNumberOfWorkersChangesNothing) {
  const ImageDataset images = dataset(true);
  const std::vector<std::vector<std::int64_t>> batches = {{0, 1}, {2, 3}, {4, 0}, {1, 2}, {3}};
  std::vector<at::Tensor> expected;
  for (const int num_workers : {0, 1, 3}) {
    auto loader =
        image_loader(images, batches, 7, PixelKind::kNormalised, 0, {.num_workers = num_workers, .num_ahead = 3});
    std::size_t number = 0;
    while (const std::optional<ImageBatch> batch = loader.next()) {
      if (num_workers == 0) expected.push_back(batch->images);
      EXPECT_TRUE(batch->images.equal(expected.at(number++)));
    }
    EXPECT_EQ(number, batches.size());
  }
  auto resumed = image_loader(images, batches, 7, PixelKind::kNormalised, 3);
  EXPECT_TRUE(resumed.next()->images.equal(expected[3]));
}

TEST(ImageBatch, BytesNormalisedAreTheNormalisedBatch) {
  const ImageDataset images = dataset(false);
  const std::vector<std::int64_t> indices = {0, 1, 2, 3, 4};
  const ImageBatch bytes = load_images(images, indices, 0, PixelKind::kBytes);
  const at::Tensor normalised = normalise(bytes.images, images.settings().normalization);
  EXPECT_EQ(bytes.images.scalar_type(), at::kByte);
  EXPECT_TRUE(normalised.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(normalised.allclose(load_images(images, indices, 0).images, 1e-6, 1e-6));
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor half = normalise(bytes.images, images.settings().normalization, type);
    EXPECT_TRUE(half.equal(normalised.to(type)));
    EXPECT_TRUE(half.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  EXPECT_THROW(normalise(normalised, images.settings().normalization), Error);
}

TEST(ImageBatch, ALoaderMayEndInTheMiddle) {
  const ImageDataset images = dataset(true);
  const std::vector<std::vector<std::int64_t>> batches(200, {0, 1, 2, 3, 4});
  for (const int num_taken : {0, 1, 5}) {
    auto loader = image_loader(images, batches, 0, PixelKind::kBytes, 0, {.num_workers = 8, .num_ahead = 16});
    for (int i = 0; i < num_taken; ++i) EXPECT_EQ(loader.next()->images.size(0), 5);
    EXPECT_EQ(loader.position(), num_taken);
  }
}

TEST(ImageBatch, ABrokenImageIsNamedInTheBatchThatNeededIt) {
  ImageFolder folder = dataset(false).folder();
  folder.items.push_back({"reference.json", 0});
  const ImageDataset images(folder, {.crop = {.crop_size = 32, .resize = 36}});
  auto loader = image_loader(images, {{0}, {1, 5}, {2}}, 0, PixelKind::kNormalised, 0, {.num_workers = 2});
  EXPECT_TRUE(loader.next().has_value());
  try {
    loader.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("reference.json: not a JPEG"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(loader.next().has_value());
}

}  // namespace
}  // namespace tessera
