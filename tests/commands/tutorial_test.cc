// docs/tutorial.md: every command of the page, in its order, as a reader types it.
#include <filesystem>
#include <string>
#include <vector>

#include "commands/train_command.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string language, text;
};

std::vector<Block> blocks_of(const std::string& page) {
  std::vector<Block> blocks;
  bool is_inside = false;
  for (const std::string& line : split(page, '\n')) {
    if (line.starts_with("```")) {
      is_inside = !is_inside;
      if (is_inside) blocks.push_back({line.substr(3), ""});
    } else if (is_inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

class Tutorial : public TrainCommandTest {
 protected:
  // What the reader has: a model folder and files of rows.
  Tutorial() {
    std::string rows;
    for (int i = 0; i < 16; ++i) {
      rows += Json{{"instruction", fmt::format("Add {} and {}.", i, i + 1)},
                   {"input", ""},
                   {"output", fmt::format("The sum is {}.", 2 * i + 1)}}
                  .dump() +
              "\n";
    }
    write_file_atomically(folder_ / "instructions.jsonl", rows);
    write_file_atomically(folder_ / "held_out.jsonl",
                          R"({"instruction": "Add 20 and 21.", "input": "", "output": "The sum is 41."})"
                          "\n");
  }
};

TEST_F(Tutorial, EveryCommandOfThePageWorks) {
  const Ended made = run_tessera(
      fmt::format("train sft --device cpu --config_name {} --tokenizer_name {} --train_file {} --max_steps 1 "
                  "--save_strategy no --report_to none --output_dir {}",
                  kTestConfig, kTestTokenizer, out("instructions.jsonl"), out("model")));
  ASSERT_EQ(made.status, 0) << made.output;
  int num_commands = 0;
  for (const Block& block : blocks_of(read_file(TESSERA_TUTORIAL))) {
    if (block.language == "json") {
      fs::create_directories(folder_ / "experiments");
      if (contains(block.text, "tessera_experiments")) {
        write_file_atomically(folder_ / "experiments" / "mine.json", block.text);
      } else {
        EXPECT_EQ(Json::parse(block.text).size(), 3U);
      }
      continue;
    }
    const fs::path program = fs::path(TESSERA_BUILT_BINARY).parent_path();
    const Ended ended =
        run_shell(fmt::format("cd {} && export PATH={}:$PATH && set -e\n{}", out(""), program.string(), block.text));
    EXPECT_EQ(ended.status, 0) << block.text << ended.output;
    num_commands += count_of(block.text, "tessera ");
  }
  EXPECT_GT(num_commands, 12);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "report.html"));
  EXPECT_TRUE(fs::exists(folder_ / "out" / "checkpoint-12"));  // the third epoch, after the resume
  EXPECT_TRUE(fs::exists(folder_ / "halves" / "model.safetensors"));
}

}  // namespace
}  // namespace tessera
