// Checks the pages for users of other programs: their commands are accepted as written, and their tables name settings
// that exist.
#include <fmt/format.h>

#include <set>

#include "core/file.h"
#include "core/text.h"
#include "settings/foreign_config.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

const std::string kRoot = TESSERA_SOURCE_FOLDER;
const char* const kPages[] = {"from_deepspeed.md", "from_fsdp.md", "from_hugging_face_trainer.md"};

std::string page(const std::string& name) {
  return read_file(kRoot + "/docs/" + name);
}

// The words of a shell line, without quotes.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  for (const char c : line + " ") {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == ' ' || c == '\n' || c == '\\')) {
      if (!word.empty()) words.push_back(std::exchange(word, ""));
    } else {
      word += c;
    }
  }
  return words;
}

class Pages : public LoadTest {
 protected:
  // What follows `tessera train`, alone or launched, in each block of a page.
  std::vector<Words> commands(const std::string& text) const {
    std::vector<Words> all;
    for (std::size_t at = 0; (at = text.find("```\n", at)) != std::string::npos;) {
      const std::size_t end = text.find("```", at + 4);
      const std::string block = text.substr(at + 4, end - at - 4);
      at = end + 3;
      const std::string start = " train ";
      const std::size_t begin = block.find(start);
      EXPECT_NE(begin, std::string::npos) << block;
      all.push_back(words_of(block.substr(begin + start.size())));
    }
    return all;
  }
};

TEST_F(Pages, CommandsAreTaken) {
  for (const char* name : kPages) {
    const std::vector<Words> all = commands(page(name));
    EXPECT_FALSE(all.empty()) << name;
    for (const Words& command : all) {
      Words words;
      for (const std::string& word : command) {
        if (word == "ARGS") {
          words.insert(words.end(), {"--model_name_or_path=m", "--train_file=t", "--validation_file=v"});
        } else if (word.starts_with("experiments/")) {
          words.push_back(kRoot + "/" + word);
        } else if (word == "fsdp.json") {
          words.push_back(file("fsdp.json", R"({"transformer_layer_cls_to_wrap": "BloomBlock"})"));
        } else {
          words.push_back(word);
        }
      }
      EXPECT_EQ(refusal_as_is(words), "accepted") << name << ": " << join(command, " ");
    }
  }
}

// `--name` in a page is a setting of some job, or of another command that the page mentions.
TEST_F(Pages, SettingsAreThoseThatThereAre) {
  const std::set<std::string> elsewhere = {"nproc_per_node", "comm_timeout", "backend",
                                           "print_config",   "help",         "no_stop_on_nan"};
  std::vector<LoadedTrainSettings> jobs;
  for (const JobTraits* each : job_traits()) {
    const std::string& job = each->name;
    testing::internal::CaptureStdout();
    jobs.push_back(load_as_is({job, "--print_config"}));
    testing::internal::GetCapturedStdout();
  }
  const auto is_known = [&](const std::string& name) {
    for (const LoadedTrainSettings& job : jobs) {
      try {
        job.schema->at(name);
        return true;
      } catch (const Error&) {
      }
    }
    return name.starts_with("no_") && elsewhere.contains(name.substr(3));
  };
  for (const char* name : kPages) {
    const std::string text = page(name);
    for (std::size_t at = 0; (at = text.find("--", at)) != std::string::npos;) {
      const std::size_t begin = at + 2;
      at = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", begin), text.size());
      const std::string setting = text.substr(begin, at - begin);
      if (setting.empty() || elsewhere.contains(setting)) continue;
      const std::string plain = setting.starts_with("no_") && !is_known(setting) ? setting.substr(3) : setting;
      EXPECT_TRUE(is_known(plain)) << name << ": --" << setting;
    }
  }
}

TEST_F(Pages, KeysOfTheFilesThatAreSettingsAreNamed) {
  const auto check = [](const std::string& text, const std::vector<KeyRule>& rules) {
    for (const KeyRule& rule : rules) {
      if (rule.fate != KeyRule::Fate::kSetting) continue;
      EXPECT_NE(text.find(rule.key()), std::string::npos) << rule.path;
    }
  };
  check(page("from_deepspeed.md"), ds_config_rules());
  check(page("from_fsdp.md"), fsdp_config_rules());
}

}  // namespace
}  // namespace tessera
