#include "results/page/html.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera {
namespace {

TEST(HtmlText, HasNoMarkupOfItsOwn) {
  EXPECT_EQ(html_text("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
  EXPECT_EQ(html_text("\" onload='x' & \tmore\n"), "&quot; onload=&#39;x&#39; &amp; \tmore\n");
  EXPECT_EQ(html_text("K\xC3\xB6ln \xF0\x9F\x9A\x80"), "K\xC3\xB6ln \xF0\x9F\x9A\x80");
}

TEST(HtmlText, IsAlwaysUtf8) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(html_text("a\xFFz"), "a" + mark + "z");
  EXPECT_EQ(html_text("a\xC3"), "a" + mark);                 // cut
  EXPECT_EQ(html_text("\xC0\xBC"), mark + mark);             // '<' in two bytes
  EXPECT_EQ(html_text("\xED\xA0\x80"), mark + mark + mark);  // half of a pair
  EXPECT_EQ(html_text(std::string("\0\x1b[31m", 6)), mark + mark + "[31m");
}

TEST(Link, IsRelativeAndNeverAScheme) {
  EXPECT_EQ(link_to("/runs/a/log/rank-0.log", "/runs"), "./a/log/rank-0.log");
  EXPECT_EQ(link_to("/runs/a/run.json", "/pages/x"), "../../runs/a/run.json");
  EXPECT_EQ(link_to("/runs/javascript:alert(1)", "/runs"), "./javascript%3Aalert%281%29");
  EXPECT_EQ(link_to("/runs/a\" onclick=\"x/run.json", "/runs"), "./a%22%20onclick%3D%22x/run.json");
  EXPECT_EQ(link_to("/runs/50%/#1?", "/runs"), "./50%25/%231%3F");
}

TEST(Numbers, ReadBackExactlyOrReadWell) {
  EXPECT_EQ(exact(0.1), "0.1");
  EXPECT_EQ(exact(4.838709677419355e-05), "4.838709677419355e-05");
  EXPECT_EQ(std::stod(exact(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(readable(559214592), "559,214,592");
  EXPECT_EQ(readable(123.456), "123.5");
  EXPECT_EQ(readable(12.3456), "12.35");
  EXPECT_EQ(readable(1.23456), "1.235");
  EXPECT_EQ(readable(0.012345), "0.0123");
  EXPECT_EQ(readable(5e-05), "5e-05");
  EXPECT_EQ(readable(7), "7");
  EXPECT_EQ(readable(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(readable_seconds(0.25), "0.25 s");
  EXPECT_EQ(readable_seconds(75), "1 min 15 s");
  EXPECT_EQ(readable_seconds(7322), "2 h 2 min");
  EXPECT_EQ(readable_MB(512), "512 MiB");
  EXPECT_EQ(readable_MB(12646.4), "12.35 GiB");
}

}  // namespace
}  // namespace tessera
