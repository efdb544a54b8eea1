#include "data/rows/arrow_support.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "support/contains.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

using internal::find_pyarrow;
using internal::no_pyarrow_text;

// A python3 that answers so.
std::string python(const TestFolder& folder, const std::string& name, const std::string& commands) {
  std::ofstream(folder / name) << "#!/bin/sh\n" << commands << "\n";
  chmod((folder / name).c_str(), 0755);
  return (folder / name).string();
}

TEST(Pyarrow, IsThatOfTheFirstPythonThatHasOne) {
  const TestFolder folder;
  const std::string without = python(folder, "without", "echo"), broken = python(folder, "broken", "exit 1");
  const std::string with = python(folder, "with", "echo /site/pyarrow; echo 26.0.1");
  const internal::FoundPyarrow found = find_pyarrow({without, broken, (folder / "missing").string(), with});
  EXPECT_EQ(found.folder, "/site/pyarrow");
  EXPECT_EQ(found.version, "26.0.1");
  EXPECT_EQ(find_pyarrow({without, broken}).folder, "");
}

TEST(Pyarrow, WithoutTheRightOneTheWaysAreNamed) {
  const std::string none = no_pyarrow_text({}, "26.0");
  EXPECT_TRUE(contains(none, "no pyarrow was found, and this Tessera reads by pyarrow 26.0"));
  EXPECT_TRUE(contains(none, "pip install 'pyarrow==26.0.*', or write it as JSON lines: python3 -c "));
  EXPECT_TRUE(contains(no_pyarrow_text({"/site/pyarrow", "21.0.0"}, "26.0"),
                       "found pyarrow 21.0.0 in /site/pyarrow, and this Tessera reads by pyarrow 26.0: pip install"));
}

}  // namespace
}  // namespace tessera
