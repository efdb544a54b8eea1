#include "results/tables/table.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

Table small_table() {
  Table table;
  table.title = "Runs & <speed>";
  table.columns = {{"Setup", "", true}, {"Runtime", "s", false}, {"Loss", "", false}};
  table.rows = {
      {text_cell("a|b"), number_cell(12.3456, 2), number_cell(4, 1)},
      {text_cell("<script>alert(\"x\")</script>"), missing_cell("it failed, \"badly\""), number_cell(3.25, 1)},
      {text_cell("c"), missing_cell("no run"), missing_cell("no run")}};
  table.notes = {"a note"};
  return table;
}

TEST(TableForms, Markdown) {
  EXPECT_EQ(table_markdown(small_table()),
            "**Runs & &lt;speed>**\n\n"
            "| Setup | Runtime (s) | Loss |\n| --- | ---: | ---: |\n"
            "| a\\|b | 12.35 | 4.0 |\n| &lt;script>alert(\"x\")&lt;/script> | - | 3.2 |\n| c | - | - |\n\n"
            "- &lt;script>alert(\"x\")&lt;/script>, Runtime: it failed, \"badly\"\n- c: no run\n- a note\n");
}

TEST(TableForms, CsvKeepsUnroundedNumbers) {
  EXPECT_EQ(
      table_csv(small_table()),
      "# Runs & <speed>\nSetup,Runtime (s),Loss\na|b,12.3456,4\n\"<script>alert(\"\"x\"\")</script>\",-,3.25\nc,-,-\n"
      "# <script>alert(\"x\")</script>, Runtime: it failed, \"badly\"\n# c: no run\n# a note\n");
}

TEST(TableForms, HtmlIsEscaped) {
  const std::string html = table_html(small_table());
  EXPECT_EQ(html.find("<script"), std::string::npos) << html;
  EXPECT_NE(html.find("<figcaption>Runs &amp; &lt;speed&gt;</figcaption>"), std::string::npos) << html;
  EXPECT_NE(html.find("<th scope=\"row\">&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;</th>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"number\" title=\"it failed, &quot;badly&quot;\">-</td>"), std::string::npos) << html;
  EXPECT_NE(html.find("<li>a note</li>"), std::string::npos);
}

TEST(TableForms, TextIsAlignedAndOneLinePerRow) {
  Table table = small_table();
  table.title.clear();
  table.rows[1][0] = text_cell("esc\x1b[31m\nnext");
  EXPECT_EQ(table_text(table),
            "Setup              Runtime (s)  Loss\n"
            "a|b                      12.35   4.0\n"
            "esc\\x1b[31m\\nnext            -   3.2\n"
            "c                            -     -\n\n"
            "esc\\x1b[31m\\nnext, Runtime: it failed, \"badly\"\nc: no run\na note\n");
}

TEST(TableForms, Transposed) {
  Table table = small_table();
  table.rows[1][0] = text_cell("b");
  const Table turned = transposed(table);
  EXPECT_EQ(table_markdown(turned),
            "**Runs & &lt;speed>**\n\n|  | a\\|b | b | c |\n| --- | ---: | ---: | ---: |\n"
            "| Runtime (s) | 12.35 | - | - |\n| Loss | 4.0 | 3.2 | - |\n\n"
            "- Runtime (s), b: it failed, \"badly\"\n- c: no run\n- a note\n");
}

}  // namespace
}  // namespace tessera
