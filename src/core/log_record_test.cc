#include "core/log_record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/train_references.h"

namespace tessera {
namespace {

TEST(PythonText, FloatsAsPythonPrintsThem) {
  for (const Json& row : train_reference("text.json", "floats")) {
    EXPECT_EQ(python_repr(double_of_bits(row[0])), row[1].get<std::string>());
  }
}

TEST(PythonText, RoundsAsPythonDoes) {
  for (const Json& row : train_reference("text.json", "rounds")) {
    const double ours = python_round(double_of_bits(row[0]), row[1]), theirs = double_of_bits(row[2]);
    EXPECT_EQ(ours, theirs) << row.dump();
    EXPECT_EQ(std::signbit(ours), std::signbit(theirs)) << row.dump();
  }
  EXPECT_TRUE(std::isnan(python_round(NAN, 4)));
  EXPECT_EQ(python_round(INFINITY, 4), INFINITY);
}

TEST(PythonText, TextIsQuotedAsPythonQuotesIt) {
  EXPECT_EQ(python_repr(std::string_view("plain")), "'plain'");
  EXPECT_EQ(python_repr(std::string_view("it's")), "\"it's\"");
  EXPECT_EQ(python_repr(std::string_view("it's \"so\"")), "'it\\'s \"so\"'");
  EXPECT_EQ(python_repr(std::string_view("a\\b\n\t\x01")), "'a\\\\b\\n\\t\\x01'");
}

TEST(PythonText, OtherValues) {
  EXPECT_EQ(python_repr(LogValue()), "None");
  EXPECT_EQ(python_repr(LogValue(true)), "True");
  EXPECT_EQ(python_repr(LogValue(std::int64_t{12})), "12");
  EXPECT_EQ(python_repr(LogValue(12.0)), "12.0");
}

}  // namespace
}  // namespace tessera
