#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

const std::string kSquad = std::string(TESSERA_TEST_DATA_FOLDER) + "/squad/";

TEST(DataCommand, ShowsWhatASquadFileHolds) {
  const Ended ended = run_tessera(fmt::format("data inspect {}sample-v1.1.json", kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "form                   SQuAD JSON, version 1.1\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows                   37\n")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "tokens"));  // no tokenizer, no tokens
}

TEST(DataCommand, CountsTokensAndKeepsThem) {
  const TestFolder folder;
  const std::string command = fmt::format(
      "data inspect {0}sample-v1.1.json --tokenizer {0}tokenizer --batch_tokens 2048 --json --cache_folder {1}", kSquad,
      folder.path().string());
  const Ended first = run_tessera(command + " 2>/dev/null"), second = run_tessera(command + " 2>/dev/null");
  ASSERT_EQ(first.status, 0) << first.output;
  const Json a = parse_json(first.output, "first")["tokens"], b = parse_json(second.output, "second")["tokens"];
  EXPECT_EQ(a["rows"], 37);
  EXPECT_EQ(a["longest"], 512);
  EXPECT_EQ(a["truncated"], 6);
  EXPECT_EQ(a["cache"]["found"], false);
  EXPECT_EQ(b["cache"]["found"], true);
  EXPECT_EQ(a["tokens"], b["tokens"]);
  EXPECT_GE(a["batches_in_order"], a["batches_tight"]);
}

TEST(DataCommand, TheCacheLiesWhereTheEnvironmentSays) {
  const TestFolder folder;
  const Ended ended = run_shell(fmt::format("XDG_CACHE_HOME={} {} data inspect {}made.jsonl --tokenizer {}tokenizer",
                                            folder.path().string(), binary(), kSquad, kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "kept in " + (folder / "tessera/squad-").string())) << ended.output;
  const Ended without =
      run_shell(fmt::format("XDG_CACHE_HOME={} {} data inspect {}made.jsonl --tokenizer {}tokenizer --no_cache",
                            folder.path().string(), binary(), kSquad, kSquad));
  EXPECT_TRUE(contains(without.output, "not kept")) << without.output;
}

TEST(DataCommand, TellsTheSubsetAndWarnsOfModesThatOnlyReproduce) {
  const Ended ended =
      run_tessera(fmt::format("data inspect {0}sample.jsonl --tokenizer {0}tokenizer --label_mode padded --max_samples "
                              "10 --subset_seed 42 --no_cache",
                              kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows used              10 of 37\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "tokens                 5120\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "exists to reproduce the ZeRO workshop")) << ended.output;
}

TEST(DataCommand, ShowsAFolderOfPictures) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "train/cat");
  for (const char* name : {"grey.jpg", "large.jpg"}) {
    std::filesystem::copy_file(std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "images" / name,
                               folder / "train/cat" / name);
  }
  const Ended ended = run_tessera("data inspect " + folder.path().string());
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "cat")) << ended.output;
  const Ended refused = run_tessera(fmt::format("data inspect {} --max_length 3", folder.path().string()));
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.output, "--max_length is for text")) << refused.output;
}

TEST(DataCommand, ReadsAPipe) {
  const Ended ended =
      run_shell(fmt::format("cat {0}sample.jsonl | {1} data inspect /dev/stdin --tokenizer {0}tokenizer "
                            "--no_cache",
                            kSquad, binary()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "rows used              37 of 37\n")) << ended.output;
}

TEST(DataCommand, WarnsWhereNothingCountsForTheLoss) {
  const Ended ended = run_tessera(fmt::format(
      "data inspect {0}made.jsonl --tokenizer {0}tokenizer --no_cache --label_mode full --max_length 1", kSquad));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "no token counts for the loss in label mode 'full'")) << ended.output;
}

TEST(DataCommand, RefusesWithTheReason) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "saved");
  EXPECT_EQ(run_shell(fmt::format("touch {0}/saved/data-00000-of-00001.arrow; printf '{{\"data\": 7}}' > {0}/bad.json",
                                  folder.path().string()))
                .status,
            0);
  const auto refusal = [&](const std::string& arguments) {
    const Ended ended = run_tessera("data " + arguments);
    EXPECT_EQ(ended.status, 2) << ended.output;
    return ended.output;
  };
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "saved").string()), "to_json"));
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "bad.json").string()), "bad.json:1:10: data: expected an array"));
  EXPECT_TRUE(contains(refusal("inspect " + (folder / "none").string()), "No such file"));
  EXPECT_TRUE(contains(refusal("inspect " + kSquad), "For text name the file: " + kSquad));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --max_length 3", kSquad)), "give --tokenizer too"));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --tokenizer a/name", kSquad)), "a/name"));
  EXPECT_TRUE(contains(refusal("inspect"), "tessera data inspect PATH"));
  EXPECT_TRUE(contains(refusal("look x"), "tessera data inspect PATH"));
  EXPECT_TRUE(contains(refusal(fmt::format("inspect {}made.jsonl --label_mode all", kSquad)), "answer"));
}

// Rows of sft and lm.
class InspectRows : public testing::Test {
 protected:
  InspectRows() {
    std::string alpaca, chats, text;
    for (int i = 0; i < 20; ++i) {
      alpaca += Json{{"instruction", fmt::format("Add {} and {}.", i, i + 1)},
                     {"output", fmt::format("The sum is {}.", 2 * i + 1)}}
                    .dump() +
                "\n";
      chats += Json{{"messages",
                     {{{"role", "user"}, {"content", fmt::format("Say {}", i)}},
                      {{"role", "assistant"}, {"content", fmt::format("It is {}", i)}}}}}
                   .dump() +
               "\n";
      text += fmt::format("Line {} says that {} plus one is {}.\n", i, i, i + 1);
    }
    write_file_atomically(folder_ / "alpaca.jsonl", alpaca);
    write_file_atomically(folder_ / "chats.jsonl", chats);
    write_file_atomically(folder_ / "text.txt", text + "\n");
    write_file_atomically(folder_ / "chat.jinja",
                          "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                          "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
                          "{% if add_generation_prompt %}<assistant>{% endif %}");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Ended inspect(const std::string& words) const {
    return run_tessera(fmt::format("data inspect {} --tokenizer {}tokenizer --no_cache", words, kSquad));
  }
  std::string text_of(const std::string& words) const {
    const Ended ended = inspect(words);
    EXPECT_EQ(ended.status, 0) << words << "\n" << ended.output;
    return ended.output;
  }
  Json json_of(const std::string& words) const { return parse_json(text_of(words + " --json 2>/dev/null"), words); }

  TestFolder folder_;
};

TEST_F(InspectRows, SaysWhatTheRowsAreAndMarksWhatCounts) {
  const std::string text = text_of(path("alpaca.jsonl"));
  EXPECT_TRUE(contains(text, "rows                   20 alpaca rows (instruction, output)\n")) << text;
  EXPECT_TRUE(contains(text, "### Instruction:\nAdd 0 and 1.\n\n### Response:\n⟦The sum is 1.</s>⟧\n")) << text;
  EXPECT_TRUE(contains(text, "--- " + path("alpaca.jsonl") + ":3: ")) << text;
  EXPECT_FALSE(contains(text, "--- " + path("alpaca.jsonl") + ":4: ")) << text;
  EXPECT_TRUE(contains(text, "in an epoch            20 rows, not packed\n")) << text;
}

TEST_F(InspectRows, ShowsConversationsAfterTheTemplate) {
  const std::string chats = path("chats.jsonl") + " --chat_template_path " + path("chat.jinja");
  EXPECT_TRUE(contains(text_of(chats + " --assistant_only_loss --show 1"), "<user>Say 0<assistant>⟦It is 0</s>⟧\n"));
  const Ended without = inspect(path("chats.jsonl"));
  EXPECT_EQ(without.status, 2);
  EXPECT_TRUE(contains(without.output, "chats.jsonl:1: a conversation needs a chat template")) << without.output;
}

TEST_F(InspectRows, CountsWhatMaxLengthCuts) {
  const Json whole = json_of(path("alpaca.jsonl"))["sources"][0];
  const int limit = whole["longest"].get<int>() - 1;
  const Json shorter = json_of(path("alpaca.jsonl") + fmt::format(" --max_length {}", limit))["sources"][0];
  EXPECT_EQ(whole["truncated"], 0);
  EXPECT_EQ(shorter["longest"], limit);
  EXPECT_GT(shorter["truncated"], 0);
  EXPECT_EQ(shorter["tokens"].get<int>() + shorter["truncated"].get<int>(), whole["tokens"]);
  EXPECT_GE(whole["longest"], whole["percentile_99"]);
  EXPECT_GE(whole["percentile_99"], whole["median"]);
  EXPECT_LT(whole["counted"], whole["tokens"]);
}

// What a run logs of the same settings.
TEST_F(InspectRows, PacksAsTrainingDoes) {
  const Json packed = json_of(path("alpaca.jsonl") + " --packing --max_length 256")["training"];
  EXPECT_LT(packed["rows"], 20);
  EXPECT_EQ(packed["tokens"], json_of(path("alpaca.jsonl"))["sources"][0]["tokens"]);
  const Json mixed = json_of("--mix " + path("alpaca.jsonl") + "=0.5," + path("alpaca.jsonl") + "=0.5");
  EXPECT_EQ(mixed["sources"].size(), 2U);
}

TEST_F(InspectRows, ReadsPlainTextAsLmDoes) {
  const Json text = json_of(path("text.txt") + " --block_size 64");
  EXPECT_EQ(text["job"], "lm");
  EXPECT_EQ(text["sources"][0]["rows_of_file"], 1);
  const Json lines = json_of(path("text.txt") + " --block_size 64 --sample_by line")["sources"][0];
  EXPECT_EQ(lines["rows_of_file"], 21);
  EXPECT_EQ(lines["left_out"], 0);  // the empty line has its end
  const Json joined = json_of(path("text.txt") + " --block_size 64 --attention_across_documents");
  const std::int64_t num_tokens = joined["sources"][0]["tokens"], num_left = joined["left_over_tokens"];
  EXPECT_EQ(joined["training"]["rows"], num_tokens / 64);
  EXPECT_EQ(num_left, num_tokens % 64);
  EXPECT_TRUE(contains(text_of(path("text.txt") + " --block_size 64 --attention_across_documents"),
                       fmt::format("left over              {} tokens, which fill no block", num_left)));
}

TEST_F(InspectRows, ChoosesTheJobByTheRowsUnlessTold) {
  EXPECT_EQ(json_of(path("chats.jsonl") + " --job sft --chat_template_path " + path("chat.jinja"))["job"], "sft");
  EXPECT_EQ(json_of(path("text.txt") + " --job sft")["sources"][0]["kind"], "text rows (text)");
  EXPECT_TRUE(contains(text_of(kSquad + "sample.jsonl --job sft"), "SQuAD rows (context, question, answers)"));
}

TEST_F(InspectRows, RefusesInOneMessage) {
  const auto refusal = [&](const std::string& words) {
    const Ended ended = inspect(words);
    EXPECT_EQ(ended.status, 2) << words << "\n" << ended.output;
    return ended.output;
  };
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --append_eos_token"), "--append_eos_token is for lm alone"));
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --label_mode full"), "--label_mode is for SQuAD"));
  EXPECT_TRUE(contains(refusal(kSquad + "sample.jsonl --packing"), "--packing is for sft alone"));
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --columns completion=answer"), "there is no column answer"));
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --mix a=1"), "give one of them"));
  EXPECT_TRUE(contains(refusal("none.jsonl --job sft"), "there is no file or folder none.jsonl"));
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --max_length 9"),
                       "no row is left to train on: 20 were left out, as nothing in them counts"));
  EXPECT_TRUE(contains(refusal(path("alpaca.jsonl") + " --job lm"), "it has no \"text\""));
  write_file_atomically(folder_ / "pairs.jsonl", R"({"chosen": "a", "rejected": "b"})");
  EXPECT_TRUE(contains(refusal(path("pairs.jsonl")), "preference rows (chosen, rejected)"));
  write_file_atomically(folder_ / "broken.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
  EXPECT_TRUE(contains(refusal(path("broken.jsonl")), "broken.jsonl:2"));
  const Ended without = run_tessera("data inspect " + path("alpaca.jsonl"));
  EXPECT_EQ(without.status, 2);
  EXPECT_TRUE(contains(without.output, "--tokenizer FOLDER is missing")) << without.output;
}

}  // namespace
}  // namespace tessera
