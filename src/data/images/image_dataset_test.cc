#include "data/images/image_dataset.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "data/loading/prefetch_loader.h"
#include "support/image_references.h"

namespace tessera {
namespace {

ImageFolder samples() {
  ImageFolder folder;
  folder.root = image_test_folder();
  folder.classes = {"one", "two"};
  for (const char* name : {"colour_420.jpg", "grey.jpg", "cmyk_adobe.jpg", "large.jpg", "tall.jpg", "one_pixel.jpg"}) {
    folder.items.push_back({name, std::ssize(folder.items) % 2});
  }
  return folder;
}

std::vector<std::uint8_t> loaded(const ImageDataset& images, std::int64_t index, std::uint32_t epoch) {
  std::vector<std::uint8_t> pixels(images.num_values());
  images.load(index, epoch, pixels.data());
  return pixels;
}

TEST(ImageDataset, ValidationImagesAreTorchvisions) {
  const ImageReferences references;
  int num_compared = 0;
  for (const Json& one : references.index["validation"]) {
    if (one["file"] != "large.jpg") continue;
    const ImageDataset images(samples());
    EXPECT_EQ(largest_difference(loaded(images, 3, 0), references.at(one)), 0);
    ++num_compared;
  }
  EXPECT_EQ(num_compared, 1);
}

TEST(ImageDataset, AnImageDoesNotDependOnWhoLoadsIt) {
  const ImageDataset images(samples(), {.augment = true, .seed = 1});
  std::vector<std::vector<std::uint8_t>> alone, together(static_cast<std::size_t>(images.size()));
  for (std::int64_t i = 0; i < images.size(); ++i) alone.push_back(loaded(images, i, 2));
  std::vector<std::thread> threads;
  for (std::int64_t first : {2, 1, 0}) {
    threads.emplace_back([&, first] {
      for (std::int64_t i = first; i < images.size(); i += 3)
        together[static_cast<std::size_t>(i)] = loaded(images, i, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, together);
}

TEST(ImageDataset, ACropThatCannotBeIsRefused) {
  EXPECT_THROW(ImageDataset(samples(), {.crop = {.crop_size = 0}}), UsageError);
  EXPECT_THROW(ImageDataset(samples(), {.crop = {.crop_size = 5000}}), UsageError);
}

TEST(ImageDataset, EpochAndSeedChangeTheCrop) {
  const ImageDataset images(samples(), {.augment = true, .seed = 1}), other(samples(), {.augment = true, .seed = 2});
  EXPECT_NE(loaded(images, 3, 0), loaded(images, 3, 1));
  EXPECT_NE(loaded(images, 3, 0), loaded(other, 3, 0));
  EXPECT_EQ(loaded(images, 3, 0), loaded(images, 3, 0));
}

TEST(ImageDataset, ABrokenFileIsNamedWithTheReason) {
  ImageFolder folder = samples();
  folder.items.push_back({"reference.json", 0});
  folder.items.push_back({"nowhere.jpg", 0});
  const ImageDataset images(std::move(folder));
  for (const auto& [index, name, reason] :
       {std::tuple{6, "reference.json: ", "not a JPEG"}, {7, "nowhere.jpg", "No such file"}}) {
    try {
      loaded(images, index, 0);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(loaded(images, 8, 0), Error);
  EXPECT_THROW(loaded(images, -1, 0), Error);
}

// TESSERA_TEST_DATA: a folder that holds tiny-imagenet-subset, for a run on real files.
TEST(RealImages, EveryPictureLoads) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "TESSERA_TEST_DATA is not set";
  for (const ImageSplit split : {ImageSplit::kTrain, ImageSplit::kValidation}) {
    const ImageDataset images(read_image_folder(std::filesystem::path(data) / "tiny-imagenet-subset", split),
                              {.augment = split == ImageSplit::kTrain});
    for (std::int64_t i = 0; i < images.size(); ++i) ASSERT_NO_THROW(loaded(images, i, 0));
  }
}

ImageDataset dataset(bool augment) {
  ImageFolder folder;
  folder.root = image_test_folder();
  folder.classes = {"one", "two", "three"};
  for (const char* name : {"colour_420.jpg", "grey.jpg", "large.jpg", "tall.jpg", "ycck.jpg"}) {
    folder.items.push_back({name, std::ssize(folder.items) % 3});
  }
  return ImageDataset(std::move(folder), {.augment = augment, .seed = 3, .crop = {.crop_size = 32, .resize = 36}});
}

using Batches = std::vector<std::vector<std::int64_t>>;

PrefetchLoader<ImageBatch> loader_of(const ImageDataset& images, const Batches& batches, std::int64_t begin,
                                     PrefetchOptions options) {
  return {begin, std::ssize(batches),
          [&](std::int64_t number) { return load_images(images, batches[static_cast<std::size_t>(number)], 7); },
          std::move(options)};
}

TEST(ImageBatch, IsTheImagesOfItsIndicesChannelsLast) {
  const ImageDataset images = dataset(true);
  const std::vector<std::int64_t> indices = {3, 0, 3};
  const ImageBatch batch = load_images(images, indices, 1);
  EXPECT_EQ(batch.images.sizes().vec(), (std::vector<std::int64_t>{3, 3, 32, 32}));
  EXPECT_TRUE(batch.images.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batch.labels[0].item<std::int64_t>(), 0);
  EXPECT_TRUE(batch.images[0].equal(batch.images[2]));
  const std::vector<std::uint8_t> alone = loaded(images, 0, 1);
  for (std::int64_t c = 0; c < 3; ++c) {
    EXPECT_EQ((batch.images[1][c][17][5].item<std::uint8_t>()), alone[static_cast<std::size_t>((17 * 32 + 5) * 3 + c)]);
  }
}

TEST(ImageBatch, TheNumberOfWorkersChangesNothing) {
  const ImageDataset images = dataset(true);
  const Batches batches = {{0, 1}, {2, 3}, {4, 0}, {1, 2}, {3}};
  std::vector<at::Tensor> expected;
  for (const int num_workers : {0, 1, 3}) {
    auto loader = loader_of(images, batches, 0, {.num_workers = num_workers, .num_ahead = 3});
    std::size_t number = 0;
    while (const std::optional<ImageBatch> batch = loader.next()) {
      if (num_workers == 0) expected.push_back(batch->images);
      EXPECT_TRUE(batch->images.equal(expected.at(number++)));
    }
    EXPECT_EQ(number, batches.size());
  }
  auto resumed = loader_of(images, batches, 3, {});
  EXPECT_TRUE(resumed.next()->images.equal(expected[3]));
}

TEST(ImageBatch, IsNormalisedInAnyType) {
  const ImageDataset images = dataset(false);
  const std::vector<std::int64_t> indices = {0, 1, 2, 3, 4};
  const ImageBatch bytes = load_images(images, indices, 0);
  EXPECT_EQ(bytes.images.scalar_type(), at::kByte);
  const at::Tensor normalised = normalise(bytes.images);
  EXPECT_TRUE(normalised.is_contiguous(at::MemoryFormat::ChannelsLast));
  const std::uint8_t* byte = bytes.images.const_data_ptr<std::uint8_t>();
  const float* value = normalised.const_data_ptr<float>();
  for (std::int64_t i = 0; i < normalised.numel(); ++i) {
    const auto c = static_cast<std::size_t>(i % 3);
    const float expected = (byte[i] / 255.0f - kPixelMean[c]) / kPixelDeviation[c];
    ASSERT_NEAR(value[i], expected, 1e-6) << i;
  }
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor half = normalise(bytes.images, type);
    EXPECT_TRUE(half.equal(normalised.to(type)));
    EXPECT_TRUE(half.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  EXPECT_THROW(normalise(normalised), Error);
}

TEST(ImageBatch, IsNormalisedIntoEarlierMemoryThatNobodyHolds) {
  const ImageDataset images = dataset(false);
  const ImageBatch first = load_images(images, std::vector<std::int64_t>{0, 1}, 0);
  const ImageBatch second = load_images(images, std::vector<std::int64_t>{2, 3}, 0);
  at::Tensor result = normalise(first.images);
  const at::Tensor expected_first = result.clone(), expected_second = normalise(second.images);
  const void* const memory = result.const_data_ptr();
  result = normalise(second.images, at::kFloat, std::move(result));
  EXPECT_EQ(result.const_data_ptr(), memory);
  EXPECT_TRUE(result.equal(expected_second));
  // Held, in whole or in part; of another type; of another shape.
  const at::Tensor held = result;
  EXPECT_NE(normalise(first.images, at::kFloat, std::move(result)).const_data_ptr(), memory);
  EXPECT_TRUE(held.equal(expected_second));
  at::Tensor in_part = normalise(second.images);
  const at::Tensor its_part = in_part[1];
  EXPECT_TRUE(normalise(first.images, at::kFloat, std::move(in_part)).equal(expected_first));
  EXPECT_TRUE(its_part.equal(expected_second[1]));
  EXPECT_EQ(normalise(first.images, at::kHalf, normalise(second.images)).scalar_type(), at::kHalf);
  EXPECT_EQ(normalise(load_images(images, std::vector<std::int64_t>{4}, 0).images, at::kFloat, held.clone()).size(0),
            1);
}

TEST(ImageBatch, ALoaderMayEndInTheMiddle) {
  const ImageDataset images = dataset(true);
  const Batches batches(200, {0, 1, 2, 3, 4});
  for (const int num_taken : {0, 1, 5}) {
    auto loader = loader_of(images, batches, 0, {.num_workers = 8, .num_ahead = 16});
    for (int i = 0; i < num_taken; ++i) EXPECT_EQ(loader.next()->images.size(0), 5);
    EXPECT_EQ(loader.position(), num_taken);
  }
}

TEST(ImageBatch, ABrokenImageIsNamedInTheBatchThatNeededIt) {
  ImageFolder folder = dataset(false).folder();
  folder.items.push_back({"reference.json", 0});
  const ImageDataset images(folder, {.crop = {.crop_size = 32, .resize = 36}});
  const Batches batches = {{0}, {1, 5}, {2}};
  auto loader = loader_of(images, batches, 0, {.num_workers = 2});
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
