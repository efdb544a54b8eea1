// Checks the order of the layers in src/layers.txt against the includes of every file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::set<std::string> uses;
  bool has_torch = true;
  std::size_t place = 0;  // from the ground up
};

struct Layers {
  std::map<std::string, Layer> by_name;
  std::map<std::string, std::string> owner_of_public;  // "tessera/world.h": "comm"
};

Layers read_layers(const std::string& text) {
  Layers layers;
  for (const std::string& line : split(text, '\n')) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first.starts_with('#')) continue;
    if (first.starts_with("include/")) {
      words >> layers.owner_of_public[first.substr(std::string("include/").size())];
      continue;
    }
    Layer& layer = layers.by_name[first];
    layer.place = layers.by_name.size();
    for (std::string word; words >> word;) {
      if (word == "no-torch") {
        layer.has_torch = false;
      } else if (word != "hot" && word != "cold") {  // how it is compiled
        layer.uses.insert(word);
      }
    }
  }
  return layers;
}

// Each file, by the name that includes use for it, with what it includes.
using Includes = std::map<std::string, std::vector<std::string>>;

std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re", std::regex::multiline);
  std::vector<std::string> names;
  for (std::sregex_iterator found(text.begin(), text.end(), pattern), end; found != end; ++found) {
    names.push_back((*found)[1]);
  }
  return names;
}

Includes read_includes(const fs::path& root) {
  Includes includes;
  for (const char* folder : {"src", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh") continue;
      includes[fs::relative(entry.path(), root / folder).generic_string()] = includes_of(read_file(entry.path()));
    }
  }
  return includes;
}

// "comm" for comm/world.cc and for the public tessera/world.h; empty for what belongs to no layer.
std::string layer_of(const Layers& layers, const std::string& file) {
  if (const auto found = layers.owner_of_public.find(file); found != layers.owner_of_public.end()) return found->second;
  const std::string folder = file.substr(0, file.find('/'));
  return layers.by_name.contains(folder) ? folder : "";
}

bool is_torch(const std::string& include) {
  return include.starts_with("torch/") || include.starts_with("ATen/") || include.starts_with("c10/");
}

// The chain of includes from a header to libtorch, or nothing.
std::vector<std::string> way_to_torch(const Includes& includes, const std::string& file, std::set<std::string>& seen) {
  if (!seen.insert(file).second || !includes.contains(file)) return {};
  for (const std::string& include : includes.at(file)) {
    if (is_torch(include)) return {file, include};
    std::vector<std::string> way = way_to_torch(includes, include, seen);
    if (!way.empty()) {
      way.insert(way.begin(), file);
      return way;
    }
  }
  return {};
}

void find_circle(const Includes& includes, const std::string& file, std::vector<std::string>& way,
                 std::set<std::string>& done, std::vector<std::string>& mistakes) {
  const auto on_the_way = std::find(way.begin(), way.end(), file);
  if (on_the_way != way.end()) {
    mistakes.push_back(fmt::format("headers in a circle: {} -> {}", join({on_the_way, way.end()}, " -> "), file));
    return;
  }
  if (!includes.contains(file) || !done.insert(file).second) return;
  way.push_back(file);
  for (const std::string& include : includes.at(file)) find_circle(includes, include, way, done, mistakes);
  way.pop_back();
}

std::vector<std::string> mistakes_of(const Layers& layers, const Includes& includes) {
  std::vector<std::string> mistakes;
  for (const auto& [name, layer] : layers.by_name) {
    for (const std::string& used : layer.uses) {
      if (!layers.by_name.contains(used) || layers.by_name.at(used).place >= layer.place) {
        mistakes.push_back(fmt::format("layer {} names {}, which is not listed before it", name, used));
      }
    }
  }
  for (const auto& [file, included] : includes) {
    const std::string layer = layer_of(layers, file);
    if (layer.empty()) {
      if (file.find('/') != std::string::npos) mistakes.push_back(fmt::format("{} belongs to no layer", file));
      continue;
    }
    for (const std::string& include : included) {
      const std::string other = layer_of(layers, include);
      if (other.empty() || other == layer || layers.by_name.at(layer).uses.contains(other)) continue;
      mistakes.push_back(
          fmt::format("{} ({}) includes {} ({}), a layer that it may not use", file, layer, include, other));
    }
    if (!layers.by_name.at(layer).has_torch) {
      std::set<std::string> seen;
      const std::vector<std::string> way = way_to_torch(includes, file, seen);
      if (!way.empty()) mistakes.push_back(fmt::format("{} knows no torch, but: {}", layer, join(way, " -> ")));
    }
  }
  std::vector<std::string> way;
  std::set<std::string> done;
  for (const auto& [file, included] : includes) find_circle(includes, file, way, done, mistakes);
  return mistakes;
}

TEST(Layers, EveryIncludeIsOfALayerListedBefore) {
  const fs::path root = TESSERA_SOURCE_FOLDER;
  const Layers layers = read_layers(read_file(root / "src" / "layers.txt"));
  ASSERT_GE(layers.by_name.size(), 17u);
  const Includes includes = read_includes(root);
  ASSERT_GE(includes.size(), 400u);
  const std::vector<std::string> mistakes = mistakes_of(layers, includes);
  EXPECT_TRUE(mistakes.empty()) << join(mistakes, "\n");
}

std::vector<std::string> unused_names(const Layers& layers, const Includes& includes) {
  std::set<std::string> uses;
  for (const auto& [file, included] : includes) {
    for (const std::string& include : included) uses.insert(layer_of(layers, file) + " " + layer_of(layers, include));
  }
  std::vector<std::string> unused;
  for (const auto& [name, layer] : layers.by_name) {
    for (const std::string& used : layer.uses) {
      if (!uses.contains(name + " " + used))
        unused.push_back(fmt::format("{} names {} and does not use it", name, used));
    }
  }
  return unused;
}

TEST(Layers, NameOnlyWhatTheyUse) {
  const fs::path root = TESSERA_SOURCE_FOLDER;
  const std::vector<std::string> unused =
      unused_names(read_layers(read_file(root / "src" / "layers.txt")), read_includes(root));
  EXPECT_TRUE(unused.empty()) << join(unused, "\n");
}

TEST(Layers, EveryFolderOfSrcIsOne) {
  const fs::path root = TESSERA_SOURCE_FOLDER;
  const Layers layers = read_layers(read_file(root / "src" / "layers.txt"));
  for (const auto& entry : fs::directory_iterator(root / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(layers.by_name.contains(entry.path().filename().string())) << entry.path();
  }
}

// A name of one of our files in a comment leads somewhere: as written, or below some folder.
TEST(Layers, FilesThatCommentsNameExist) {
  const fs::path root = TESSERA_SOURCE_FOLDER;
  const std::set<std::string> others = {"jpeglib.h", "NAME.cc", "NAME.cu", "packaging/wheel/start.cc"};
  std::vector<std::pair<std::string, std::string>> comments;  // place, text
  std::set<std::string> names;                                // "comm/world.cc", "world.cc"
  for (const char* folder : {"src", "include", "tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh") continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      for (std::size_t begin = 0; begin != std::string::npos; begin = file.find('/', begin)) {
        names.insert(file.substr(begin == 0 ? 0 : ++begin));
        if (begin == 0) ++begin;
      }
      std::size_t number = 0;
      for (const std::string& line : split(read_file(entry.path()), '\n')) {
        ++number;
        const std::size_t comment = line.find("//");
        if (comment == std::string::npos || line.substr(0, comment).find('"') != std::string::npos) continue;
        comments.emplace_back(fmt::format("{}:{}", file, number), line.substr(comment + 2));
      }
    }
  }
  ASSERT_GE(comments.size(), 5'000u);
  // Not "transformer.h.3", a module's name.
  const std::regex pattern(R"re((?:^|[\s(`,;])([A-Za-z_][\w/]*\.(?:cc|cuh|cu|h))(?!\w|\.\w))re");
  for (const auto& [place, text] : comments) {
    if (text.find(".c") == std::string::npos && text.find(".h") == std::string::npos) continue;
    for (std::sregex_iterator found(text.begin(), text.end(), pattern), end; found != end; ++found) {
      const std::string name = (*found)[1];
      EXPECT_TRUE(names.contains(name) || others.contains(name)) << place << " names " << name;
    }
  }
}

// docs/architecture.md lists the layers in the same order.
TEST(Layers, AreInTheDocsInTheirOrder) {
  const fs::path root = TESSERA_SOURCE_FOLDER;
  const std::string page = read_file(root / "docs" / "architecture.md");
  const Layers layers = read_layers(read_file(root / "src" / "layers.txt"));
  std::map<std::size_t, std::size_t> position_of_place;
  for (const auto& [name, layer] : layers.by_name) {
    const std::size_t position = page.find(fmt::format("| `{}/`", name));
    EXPECT_NE(position, std::string::npos) << name;
    position_of_place[layer.place] = position;
  }
  std::size_t last = 0;
  for (const auto& [place, position] : position_of_place) {
    EXPECT_GT(position, last) << "layer " << place;
    last = position;
  }
}

// What the tests above report.
class WrongIncludes : public testing::Test {
 protected:
  const Layers layers_ = read_layers(
      "# a comment\n"
      "core no-torch\ncomm core\ntrain core comm\n\ninclude/tessera/world.h comm\n");
  const Includes right_ = {{"core/text.h", {"string"}},
                           {"comm/group.cc", {"core/text.h", "ATen/core/Tensor.h", "tessera/world.h"}},
                           {"tessera/world.h", {"ATen/core/Tensor.h"}},
                           {"train/loop.cc", {"comm/group.h", "tessera/world.h"}}};

  std::string mistake_with(const std::string& file, const std::vector<std::string>& included) const {
    Includes wrong = right_;
    wrong[file] = included;
    return join(mistakes_of(layers_, wrong), "\n");
  }
};

TEST_F(WrongIncludes, AreFound) {
  EXPECT_EQ(join(mistakes_of(layers_, right_), "\n"), "");
  EXPECT_EQ(mistake_with("comm/group.cc", {"train/loop.h"}),
            "comm/group.cc (comm) includes train/loop.h (train), a layer that it may not use");
  EXPECT_EQ(mistake_with("core/text.h", {"ATen/core/Tensor.h"}),
            "core knows no torch, but: core/text.h -> ATen/core/Tensor.h");
  EXPECT_EQ(mistake_with("core/text.cc", {"tessera/world.h"}),
            "core/text.cc (core) includes tessera/world.h (comm), a layer that it may not use\n"
            "core knows no torch, but: core/text.cc -> tessera/world.h -> ATen/core/Tensor.h");
  EXPECT_EQ(mistake_with("elsewhere/file.cc", {}), "elsewhere/file.cc belongs to no layer");
}

TEST_F(WrongIncludes, InACircleAreFound) {
  Includes circle = right_;
  circle["comm/a.h"] = {"comm/b.h"};
  circle["comm/b.h"] = {"comm/a.h"};
  EXPECT_EQ(join(mistakes_of(layers_, circle), "\n"), "headers in a circle: comm/a.h -> comm/b.h -> comm/a.h");
}

TEST_F(WrongIncludes, ALayerThatNamesALaterOneIsFound) {
  const Layers wrong = read_layers("core\ncomm core train\ntrain core comm\n");
  EXPECT_EQ(join(mistakes_of(wrong, {}), "\n"), "layer comm names train, which is not listed before it");
}

TEST_F(WrongIncludes, ALayerThatIsNamedForNothingIsFound) {
  EXPECT_EQ(join(unused_names(layers_, right_), "\n"), "train names core and does not use it");
}

}  // namespace
}  // namespace tessera
