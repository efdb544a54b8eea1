#include "data/images/image_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "support/image_references.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class ImageFolderTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content = "") {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
  }
  void put_tiny_image_net() {
    for (const char* name : {"train/n02/images/n02_0.JPEG", "train/n01/images/n01_0.JPEG", "val/images/val_0.JPEG",
                             "val/images/val_1.JPEG"}) {
      put(name, read_file(image_test_folder() / "colour_420.jpg"));
    }
    put("val/val_annotations.txt", "val_1.JPEG\tn02\t0\t32\t44\t62\nval_0.JPEG\tn01\t52\t55\t57\t59\n");
  }
  std::string refusal(ImageSplit split) { return refusal_of_folder(folder_.path(), split); }
  static std::string refusal_of_folder(const fs::path& folder, ImageSplit split) {
    try {
      read_image_folder(folder, split);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

  const TestFolder folder_;
};

TEST_F(ImageFolderTest, ListsWhatTorchvisionLists) {
  const ImageReferences references;
  const Json& expected = references.index["folder"];
  for (const Json& file : expected["files"]) put(file.get<std::string>());
  const ImageFolder folder = read_image_folder(folder_.path(), ImageSplit::kTrain);
  EXPECT_EQ(Json(folder.classes), expected["classes"]);
  Json items = Json::array();
  for (const ImageItem& item : folder.items) items.push_back({item.path, item.label});
  EXPECT_EQ(items, expected["samples"]);
}

TEST_F(ImageFolderTest, ReadsTinyImageNetsForm) {
  put_tiny_image_net();
  const ImageFolder train = read_image_folder(folder_.path(), ImageSplit::kTrain);
  EXPECT_EQ(train.classes, (std::vector<std::string>{"n01", "n02"}));
  ASSERT_EQ(train.items.size(), 2u);
  EXPECT_EQ(train.items[1].path, "train/n02/images/n02_0.JPEG");
  const ImageFolder validation = read_image_folder(folder_.path(), ImageSplit::kValidation);
  EXPECT_EQ(validation.classes, train.classes);
  ASSERT_EQ(validation.items.size(), 2u);
  EXPECT_EQ(validation.items[0].path, "val/images/val_1.JPEG");
  EXPECT_EQ(validation.items[0].label, 1);
  EXPECT_EQ(validation.items[1].label, 0);
  EXPECT_TRUE(fs::exists(validation.path_of(1)));
}

// Opening a pipe waits until somebody writes into it.
TEST_F(ImageFolderTest, APipeWithAPicturesNameIsRefused) {
  put_tiny_image_net();
  ASSERT_EQ(mkfifo((folder_ / "train/n01/images/pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder_ / "val/images/pipe.JPEG").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder_ / "train/n02/pipe.txt").c_str(), 0600), 0);  // nobody opens it
  EXPECT_EQ(refusal(ImageSplit::kTrain),
            (folder_ / "train/n01/images/pipe.jpg").string() +
                " is a pipe, a socket or a device, not a picture: remove it from the folder");
  EXPECT_EQ(refusal(ImageSplit::kValidation), (folder_ / "val/images/pipe.JPEG").string() +
                                                  " is a pipe, a socket or a device, not a picture: remove it from the "
                                                  "folder");
  fs::create_symlink("pipe.jpg", folder_ / "train/n01/images/another.jpg");
  EXPECT_TRUE(refusal(ImageSplit::kTrain).ends_with("remove it from the folder"));
}

TEST_F(ImageFolderTest, ValidationClassesHaveTheNumbersOfTraining) {
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "val/c/2.jpg"}) put(name);
  const ImageFolder validation = read_image_folder(folder_.path(), ImageSplit::kValidation);
  ASSERT_EQ(validation.items.size(), 1u);
  EXPECT_EQ(validation.items[0].label, 2);
}

TEST_F(ImageFolderTest, OneTreeWithoutSplitsIsForTraining) {
  put("cat/1.jpg");
  put("dog/1.jpg");
  EXPECT_EQ(read_image_folder(folder_.path(), ImageSplit::kTrain).items.size(), 2u);
  EXPECT_NE(refusal(ImageSplit::kValidation).find("no folder val"), std::string::npos);
}

TEST_F(ImageFolderTest, PicturesOfOtherKindsAreRefusedByName) {
  put("train/a/1.jpg");
  put("train/a/2.PNG");
  EXPECT_NE(refusal(ImageSplit::kTrain).find("train/a/2.PNG is not a JPEG"), std::string::npos);
}

TEST_F(ImageFolderTest, AMistakeInTheAnnotationsIsNamedByFileAndLine) {
  put_tiny_image_net();
  put("val/val_annotations.txt", "val_0.JPEG\tn01\nval_1.JPEG\tn07\n");
  EXPECT_NE(refusal(ImageSplit::kValidation).find("val/val_annotations.txt:2: class 'n07'"), std::string::npos);
  put("val/images/2.png");
  EXPECT_NE(refusal(ImageSplit::kValidation).find("val/images/2.png is not a JPEG"), std::string::npos);
}

TEST_F(ImageFolderTest, AnnotationsLeftBehindByMovedPicturesSayNothing) {
  put_tiny_image_net();
  fs::create_directories(folder_ / "val" / "n02");
  fs::rename(folder_ / "val" / "images", folder_ / "val" / "n02" / "images");
  const ImageFolder validation = read_image_folder(folder_.path(), ImageSplit::kValidation);
  ASSERT_EQ(validation.items.size(), 2u);
  EXPECT_EQ(validation.items[0].path, "val/n02/images/val_0.JPEG");
  EXPECT_EQ(validation.items[0].label, 1);
}

TEST_F(ImageFolderTest, PicturesBothAnnotatedAndInClassFoldersAreRefused) {
  put_tiny_image_net();
  put("val/.cache/x");
  EXPECT_EQ(refusal(ImageSplit::kValidation), "accepted");
  put("val/n02/1.JPEG");
  EXPECT_NE(refusal(ImageSplit::kValidation).find("class folders such as n02"), std::string::npos);
}

TEST_F(ImageFolderTest, TheFolderAboveADataSetIsRefusedWithTheRightOne) {
  put("tiny-imagenet-200/train/a/1.jpg");
  put("tiny-imagenet-200/val/a/1.jpg");
  EXPECT_NE(refusal(ImageSplit::kTrain).find("use " + (folder_ / "tiny-imagenet-200").string()), std::string::npos);
}

TEST_F(ImageFolderTest, FoldersThatLackSomethingAreRefused) {
  const auto has = [&](ImageSplit split, const std::string& part) {
    return refusal(split).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(ImageSplit::kTrain, "holds no class folders"));
  put("val/a/1.jpg");
  EXPECT_TRUE(has(ImageSplit::kTrain, "no folder train"));
  put("train/a/1.jpg");
  put("train/b/notes.txt");
  EXPECT_TRUE(has(ImageSplit::kTrain, "no JPEG for class b"));
  put("val/c/1.jpg");
  EXPECT_TRUE(has(ImageSplit::kValidation, "does not have"));
  fs::remove_all(folder_ / "val");
  put("val/images/1.jpg");
  EXPECT_TRUE(has(ImageSplit::kValidation, "val_annotations.txt is missing"));
}

TEST_F(ImageFolderTest, WhatIsNoFolderIsRefused) {
  put("file");
  const auto refusal_of = [&](const char* name) { return refusal_of_folder(folder_ / name, ImageSplit::kTrain); };
  EXPECT_NE(refusal_of("nowhere").find("there is no folder"), std::string::npos);
  EXPECT_NE(refusal_of("file").find("is a file"), std::string::npos);
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_NE(refusal_of("circle").find("symbolic links"), std::string::npos);  // the system's reason
}

TEST_F(ImageFolderTest, ALinkToItsOwnFolderEndsWithAMessage) {
  put("train/a/1.jpg");
  fs::create_directory_symlink(folder_ / "train" / "a", folder_ / "train" / "a" / "again");
  EXPECT_NE(refusal(ImageSplit::kTrain).find("link"), std::string::npos);
}

TEST_F(ImageFolderTest, TheDescriptionCountsAndNamesWhatIsBroken) {
  put_tiny_image_net();
  put("train/n03/images/x.JPEG", "not a picture");
  const std::string text = describe_image_folder(folder_.path());
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("TinyImageNet")) << text;
  EXPECT_TRUE(has("classes     3: n01, n02, n03")) << text;
  EXPECT_TRUE(has("train       3 images of 3 of 3 classes, 1 per class")) << text;
  EXPECT_TRUE(has("validation  2 images of 2 of 3 classes, 0 to 1 per class")) << text;
  EXPECT_TRUE(has("64 x 64 (2)")) << text;
  EXPECT_TRUE(has("x.JPEG: not a JPEG")) << text;
}

// TESSERA_TEST_DATA: a folder that holds tiny-imagenet-subset, for a run on real files.
TEST(RealImages, TheSubsetIsListedWhole) {
  const char* data = std::getenv("TESSERA_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "TESSERA_TEST_DATA is not set";
  const fs::path root = fs::path(data) / "tiny-imagenet-subset";
  EXPECT_EQ(read_image_folder(root, ImageSplit::kTrain).items.size(), 2000u);
  EXPECT_EQ(read_image_folder(root, ImageSplit::kValidation).items.size(), 1000u);
}

const std::vector<std::string> kClasses = {"n01", "n02"};
const std::vector<std::string> kFiles = {"0.JPEG", "1.JPEG"};

std::vector<ImageItem> parsed(std::string_view text, const std::vector<std::string>& files = kFiles) {
  return parse_val_annotations(text, "a.txt", kClasses, files, "val/images");
}

std::string refusal_of_annotations(std::string_view text, const std::vector<std::string>& files = kFiles) {
  try {
    parsed(text, files);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ValAnnotations, GiveThePicturesInTheOrderOfTheLines) {
  const std::vector<ImageItem> items = parsed("1.JPEG\tn02\t0\t32\t44\t62\n0.JPEG\tn01\t52\t55\t57\t59\n");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].path, "val/images/1.JPEG");
  EXPECT_EQ(items[0].label, 1);
  EXPECT_EQ(items[1].path, "val/images/0.JPEG");
  EXPECT_EQ(items[1].label, 0);
}

TEST(ValAnnotations, WhatEditorsAddIsNoMistake) {
  EXPECT_EQ(refusal_of_annotations("\xef\xbb\xbf"
                                   "0.JPEG\tn01\r\n\r\n1.JPEG\tn02\textra\tcolumns"),
            "accepted");
}

TEST(ValAnnotations, AMistakeIsNamedByItsLine) {
  EXPECT_EQ(refusal_of_annotations("0.JPEG\tn01\n1.JPEG\tn07\n"), "a.txt:2: class 'n07' has no folder in train/");
  EXPECT_EQ(refusal_of_annotations("0.JPEG\tn01\n\n0.JPEG\tn01\n"),
            "a.txt:3: '0.JPEG' is listed twice, first in line 1");
  EXPECT_EQ(refusal_of_annotations("../0.JPEG\tn01\n"), "a.txt:1: '../0.JPEG' is not a JPEG in val/images");
  EXPECT_EQ(refusal_of_annotations("0.JPEG n01\n"),
            "a.txt:1: expected a file name, a tab and a class, found '0.JPEG n01'");
}

TEST(ValAnnotations, EveryPictureNeedsALine) {
  EXPECT_EQ(refusal_of_annotations("0.JPEG\tn01\n"),
            "a.txt has no line for 1 of the JPEGs in val/images, such as 1.JPEG");
  EXPECT_EQ(refusal_of_annotations("", {}), "a.txt lists no pictures, and val/images holds none");
}

}  // namespace
}  // namespace tessera
