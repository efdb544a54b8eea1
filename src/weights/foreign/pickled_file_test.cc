#include "weights/foreign/pickled_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/file.h"
#include "support/test_folder.h"
#include "support/weight_files.h"

namespace tessera {
namespace {

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Where a test's pickles lie.
class Pickles {
 public:
  PickledFile open(const std::string& pickle) {
    const auto path = folder_.path() / "a.pkl";
    std::ofstream(path, std::ios::binary) << pickle;
    return PickledFile(path);
  }

 private:
  TestFolder folder_;
};

TEST(PickledFile, NumbersTextsAndContainersOfTheProtocolsThatPythonWrites) {
  Pickles pickles;
  // pickle.dumps({'a': [1, 2.5, True, None, (b'x', 'y')], 7: {3}}, 2), and with 4
  const std::string by_protocol[] = {
      from_hex("80027d71002858010000006171015d7102284b01474004000000000000884e635f636f646563730a656e636f64650a710358"
               "0100000078710458060000006c6174696e3171058671065271075801000000797108867109654b07635f5f6275696c74696e"
               "5f5f0a7365740a710a5d710b4b036185710c52710d752e"),
      from_hex("8004952c000000000000007d94288c0161945d94284b01474004000000000000884e430178948c0179948694654b078f9428"
               "4b0390752e")};
  for (const std::string& pickle : by_protocol) {
    const PickledFile file = pickles.open(pickle);
    const std::vector<PickledNode> list = file.root().at("a").list();
    ASSERT_EQ(list.size(), 5u);
    EXPECT_EQ(list[0].whole(), 1);
    EXPECT_EQ(list[1].number(), 2.5);
    EXPECT_EQ(list[2].whole(), 1);
    EXPECT_TRUE(list[3].is_none());
    EXPECT_EQ(list[4].list()[1].text(), "y");
    EXPECT_EQ(file.root().entries()[1].first, "7");
    EXPECT_FALSE(file.root().find("b"));
    EXPECT_REFUSED(file.root().at("b"), "a.pkl: 'b' is missing");
    EXPECT_REFUSED(list[1].whole(), "'a.1': expected a whole number, found a fraction");
  }
}

TEST(PickledFile, NothingIsExecutedAndTheNameIsRefusedWhereverItStands) {
  Pickles pickles;
  for (const std::string name : {"posix\nsystem", "os\nsystem", "builtins\neval", "__builtin__\ngetattr",
                                 "subprocess\nPopen", "torchx\nrun", "__main__\nArgs", "functools\npartial"}) {
    const std::string dotted = name.substr(0, name.find('\n')) + "." + name.substr(name.find('\n') + 1);
    EXPECT_REFUSED(
        pickles.open("\x80\x02}" + pickled_text("unused") + "c" + name + "\n(" + pickled_text("ls") + "tRs."),
        "it needs " + dotted);
    const std::string stacked = "\x80\x04" + pickled_text(name.substr(0, name.find('\n'))) +
                                pickled_text(name.substr(name.find('\n') + 1)) + "\x93)R.";
    EXPECT_REFUSED(pickles.open(stacked), "it needs " + dotted);
  }
}

TEST(PickledFile, AnObjectOfAKnownPackageIsCarriedAndRefusedWhereAValueIsNeeded) {
  Pickles pickles;
  const PickledFile file =
      pickles.open("\x80\x02}(" + pickled_text("args") + "cargparse\nNamespace\n)\x81}" + pickled_text("lr") +
                   "K\x05sb" + pickled_text("stage") + "cdeepspeed.x\nStage\n\x4b\x02\x85R" + pickled_text("hook") +
                   "ctorch.hub\nload\n" + pickled_text("x") + "\x85Ru.");
  EXPECT_REFUSED(file.root().at("args").number(), "'args': expected a whole number, found argparse.Namespace");
  EXPECT_REFUSED(file.root().at("hook").at("x"), "'hook': expected a dict, found torch.hub.load");
  EXPECT_EQ(file.root().at("args").at("lr").whole(), 5);
  EXPECT_EQ(file.root().at("stage").whole(), 2);
  EXPECT_TRUE(file.root().at("args").is_object("argparse.Namespace"));
}

TEST(PickledFile, DeepNestingAndSelfReferenceNeedNoStack) {
  Pickles pickles;
  constexpr int kDepth = 200'000;
  std::string deep = "\x80\x02";
  for (int i = 0; i < kDepth; ++i) deep += "]";
  deep += std::string(kDepth - 1, 'a') + ".";
  EXPECT_EQ(pickles.open(deep).root().list().size(), 1u);
  const PickledFile circle = pickles.open(std::string("\x80\x02]q\0h\0a.", 9));
  EXPECT_EQ(circle.root().list()[0].list().size(), 1u);
}

TEST(PickledFile, BrokenOnesAreRefused) {
  Pickles pickles;
  const std::pair<std::string, const char*> broken[] = {
      {"", "neither a torch.save file nor a pickle"},
      {"hello", "neither a torch.save file nor a pickle"},
      {"PK", "broken zip archive"},
      {"\x80\x06.", "pickle protocol 6"},
      {"\x80\x04\x93.", "its stack is empty"},
      {"\x80\x04NN\x93.", "a name that is no string"},
      {"\x80\x04" + pickled_text("torch") + pickled_text(std::string(127, 'x')) + pickled_text(std::string(127, 'x')) +
           "\x93.",
       "it needs xxx"},
      {"\x80\x04\x8c\xff", "it ends too early"},
      {"\x80\x04"
       "B\xff\xff\xff\xff",
       "it ends too early"},
      {"\x80\x02"
       "ctorch\nSize\nN\x85R.",
       "a size that is no tuple"},
      {"\x80\x02"
       "ctorch\nFloatStorage\n)R.",
       "a call to a storage type"},
      {"\x80\x02NNb.", "attributes set on an object"},
  };
  for (const auto& [pickle, message] : broken) {
    SCOPED_TRACE(message);
    EXPECT_REFUSED(pickles.open(pickle), message);
  }
  const PickledFile number = pickles.open("\x80\x02\x8a\x09" + std::string(9, 'x') + ".");
  EXPECT_REFUSED(number.root().whole(), "found builtins.int");
}

}  // namespace
}  // namespace tessera
