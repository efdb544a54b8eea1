#include "data/images/val_annotations.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

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
