// `tessera train sft` and `tessera train lm` as users start them: rows of their own, templates, packing, ranks.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "commands/train_command.h"
#include "core/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class RowJobs : public TrainCommandTest {
 protected:
  RowJobs() {
    std::string alpaca, chats, text;
    for (int i = 0; i < 48; ++i) {
      alpaca += Json{{"instruction", fmt::format("Add {} and {}.", i, i + 1)},
                     {"input", ""},
                     {"output", fmt::format("The sum is {}.", 2 * i + 1)}}
                    .dump() +
                "\n";
      chats += Json{{"messages",
                     {{{"role", "user"}, {"content", fmt::format("Say {}", i)}},
                      {{"role", "assistant"}, {"content", fmt::format("{}", i)}}}}}
                   .dump() +
               "\n";
      text += fmt::format("Line {} says that {} plus one is {}.\n", i, i, i + 1);
    }
    write_file_atomically(folder_ / "alpaca.jsonl", alpaca);
    write_file_atomically(folder_ / "chats.jsonl", chats);
    write_file_atomically(folder_ / "text.txt", text);
    write_file_atomically(folder_ / "chat.jinja",
                          "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
                          "{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
                          "{% if add_generation_prompt %}<assistant>{% endif %}");
  }

  Ended train(const std::string& job, const std::string& name, const std::string& more, int num_ranks = 0) const {
    return run_tessera(
        fmt::format("train {} --device cpu --output_dir {} --disable_tqdm --report_to none --config_name {} "
                    "--tokenizer_name {} --learning_rate 1e-2 --logging_steps 1 --save_strategy no {}",
                    job, out(name), kTestConfig, kTestTokenizer, more),
        num_ranks);
  }
  std::vector<double> losses(const std::string& job, const std::string& name, const std::string& more,
                             int num_ranks = 0) const {
    const Ended ended = train(job, name, more, num_ranks);
    EXPECT_EQ(ended.status, 0) << more << "\n" << ended.output;
    return logged(ended.output, "loss");
  }
};

TEST_F(RowJobs, SftLearnsInstructionsTheSameUnderEveryStrategy) {
  const std::string rows = "--train_file " + out("alpaca.jsonl") + " --num_train_epochs 2 ";
  const Ended alone = train("sft", "alone", rows + "--per_device_train_batch_size 4");
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_TRUE(contains(alone.output, "alpaca rows (instruction, input, output), 48 of them")) << alone.output;
  const std::vector<double> expected = logged(alone.output, "loss");
  ASSERT_EQ(expected.size(), 24U);
  EXPECT_LT(expected.back(), 0.8 * expected.front());
  const std::vector<double> ddp = losses("sft", "ddp", rows + "--per_device_train_batch_size 2 --strategy ddp", 2);
  EXPECT_EQ(losses("sft", "shards", rows + "--per_device_train_batch_size 2 --strategy full_shard", 2), ddp);
  ASSERT_EQ(ddp.size(), expected.size());
  for (std::size_t i = 0; i < ddp.size(); ++i) EXPECT_NEAR(ddp[i], expected[i], 2e-3) << i;
}

// All rows in one update: packed or not, each token has the same loss.
TEST_F(RowJobs, PackedRowsHaveTheLossOfRowsApart) {
  const std::string rows = "--train_file " + out("alpaca.jsonl") + " --max_length 256 --max_steps 1 ";
  const std::vector<double> apart = losses("sft", "apart", rows + "--per_device_train_batch_size 48");
  const Ended packed = train("sft", "packed", rows + "--per_device_train_batch_size 48 --packing");
  ASSERT_EQ(packed.status, 0) << packed.output;
  EXPECT_TRUE(contains(packed.output, "packed: 48 rows as ")) << packed.output;
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_NEAR(logged(packed.output, "loss").at(0), apart[0], 1e-3);
}

TEST_F(RowJobs, ChatsNeedATemplateAndCountWhatTheAssistantSays) {
  const std::string rows = "--train_file " + out("chats.jsonl") + " --max_steps 2 ";
  const Ended without = train("sft", "without", rows);
  EXPECT_EQ(without.status, 2);
  EXPECT_TRUE(contains(without.output, "chats.jsonl:1: a conversation needs a chat template")) << without.output;
  const std::string shaped = rows + "--chat_template_path " + out("chat.jinja");
  const Ended all = train("sft", "all", shaped), some = train("sft", "some", shaped + " --assistant_only_loss");
  ASSERT_EQ(all.status, 0) << all.output;
  ASSERT_EQ(some.status, 0) << some.output;
  EXPECT_TRUE(contains(all.output, "messages rows (messages), 48 of them")) << all.output;
  EXPECT_NE(logged(all.output, "loss"), logged(some.output, "loss"));
}

TEST_F(RowJobs, LmReportsItsPerplexity) {
  const Ended ended = train("lm", "lm",
                            "--train_file " + out("text.txt") +
                                " --block_size 64 --max_steps 2 --sample_by line "
                                "--validation_split_percentage 24 --do_eval");
  ASSERT_EQ(ended.status, 0) << ended.output;
  // 11.52 of them.
  EXPECT_TRUE(contains(ended.output, "the first 12 of 48 rows are for evaluations")) << ended.output;
  const double loss = logged(ended.output, "eval_loss").at(0);
  EXPECT_NEAR(logged(ended.output, "eval_perplexity").at(0), std::exp(loss), 1e-6 * std::exp(loss));
  EXPECT_EQ(losses("lm", "across",
                   "--train_file " + out("text.txt") + " --block_size 64 --max_steps 2 --attention_across_documents")
                .size(),
            2U);
}

// Else each line of a book would see only itself.
TEST_F(RowJobs, ATextFileIsADocumentUnlessLinesAreAskedFor) {
  const std::string text = "--train_file " + out("text.txt") + " --block_size 64 --max_steps 1 ";
  const auto num_packed = [&](const std::string& name, const std::string& words) {
    const Ended ended = train("lm", name, text + words);
    EXPECT_EQ(ended.status, 0) << ended.output;
    const std::size_t at = ended.output.find("packed: ");
    return at == std::string::npos ? 0 : std::stoi(ended.output.substr(at + 8));
  };
  EXPECT_EQ(num_packed("lines", "--sample_by line"), 48);
  EXPECT_EQ(num_packed("across", "--attention_across_documents"), 48);
  const int num_pieces = num_packed("document", "");
  EXPECT_GT(num_pieces, 1);
  EXPECT_LT(num_pieces, 48);
  EXPECT_EQ(num_packed("document_across", "--attention_across_documents --sample_by document"), 1);
}

TEST_F(RowJobs, ADataSetIsItsSplits) {
  fs::create_directories(folder_ / "sums" / "data");
  fs::copy_file(folder_ / "alpaca.jsonl", folder_ / "sums" / "data" / "train-00000.jsonl");
  write_file_atomically(folder_ / "sums" / "data" / "test-00000.jsonl",
                        R"({"instruction": "Add 7 and 7.", "input": "", "output": "The sum is 14."})");
  const Ended ended = train("sft", "splits", "--dataset_name " + out("sums") + " --max_steps 1 --do_eval");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "train-00000.jsonl: alpaca rows (instruction, input, output), 48 of them"))
      << ended.output;
  EXPECT_TRUE(contains(ended.output, "test-00000.jsonl: alpaca rows (instruction, input, output), 1 of them"))
      << ended.output;
  EXPECT_EQ(logged(ended.output, "eval_loss").size(), 1U);
}

TEST_F(RowJobs, EvaluationsNeverSeeTheRowsTrainedOnUnasked) {
  fs::create_directories(folder_ / "plain");
  fs::copy_file(folder_ / "alpaca.jsonl", folder_ / "plain" / "sums.jsonl");
  const std::string folder = out("plain"), file = folder + "/sums.jsonl", one_step = " --max_steps 1 ";
  for (const std::string& words : {"--dataset_name " + folder + " --do_eval",
                                   "--train_file " + file + " --validation_file " + folder + " --do_eval"}) {
    const Ended refused = train("sft", "seen", words + one_step);
    EXPECT_EQ(refused.status, 2) << words << "\n" << refused.output;
    EXPECT_TRUE(contains(refused.output, "sums.jsonl is trained on, and would be what is evaluated, too"))
        << refused.output;
  }
  losses("sft", "named", "--train_file " + file + " --validation_file " + file + " --do_eval" + one_step);
  losses("sft", "meant", "--dataset_name " + folder + " --dataset_test_split train --do_eval" + one_step);
  losses("sft", "no_evaluation", "--dataset_name " + folder + " --eval_strategy no" + one_step);
}

TEST_F(RowJobs, ANamedShareOfTheRowsComesBeforeTheTestSplit) {
  fs::create_directories(folder_ / "lines");
  fs::copy_file(folder_ / "text.txt", folder_ / "lines" / "train.txt");
  const std::string words =
      "--dataset_name " + out("lines") + " --block_size 64 --max_steps 1 --do_eval --sample_by line ";
  const Ended ended = train("lm", "share", words + "--validation_split_percentage 25");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "the first 12 of 48 rows are for evaluations")) << ended.output;
  const Ended none = train("lm", "none", words + "--validation_split_percentage 1");
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(contains(none.output, "--validation_split_percentage 1: of 48 rows that is none to evaluate on"))
      << none.output;
  const Ended unasked = train("lm", "unasked", words);
  EXPECT_TRUE(contains(unasked.output, "the first 2 of 48 rows are for evaluations")) << unasked.output;
  const Ended split = train("lm", "split", words + "--dataset_test_split test");
  EXPECT_TRUE(contains(split.output, "has no split test; there is train")) << split.output;
}

// An empty line becomes the end token alone, which nothing predicts.
TEST_F(RowJobs, RowsOfOneTokenAreLeftOut) {
  write_file_atomically(folder_ / "gaps.txt", "One plus one is two.\n\n\nTwo plus two is four.\n\n");
  const Ended ended =
      train("sft", "gaps", "--train_file " + out("gaps.txt") + " --per_device_train_batch_size 1 --num_train_epochs 1");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "text rows (text), 2 of them with")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "3 were left out: nothing in them counts")) << ended.output;
}

// Rows cut wherever max_length ends: some pieces are prompt alone.
TEST_F(RowJobs, NoUpdateIsOfPromptsAlone) {
  const std::string prompt(600, 'a');
  write_file_atomically(folder_ / "long.jsonl", Json{{"prompt", prompt}, {"completion", "b"}}.dump());
  const Ended ended = train("sft", "long",
                            "--train_file " + out("long.jsonl") +
                                " --packing --packing_strategy wrapped --max_length 8 --per_device_train_batch_size 1 "
                                "--num_train_epochs 1");
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(logged(ended.output, "loss").size(), 1U) << ended.output;
}

TEST_F(RowJobs, AMixDrawsByWeightTheSameEveryTime) {
  const std::string mix = "--mix " + out("alpaca.jsonl") + "=0.75," + out("few.jsonl") + "=0.25 --max_steps 3 ";
  write_file_atomically(folder_ / "few.jsonl", R"({"instruction": "Add 7 and 7.", "input": "", "output": "14"})");
  const std::vector<double> first = losses("sft", "mix", mix);
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ(losses("sft", "mix_again", mix), first);
}

TEST_F(RowJobs, RefusesWhatItCannotRead) {
  const auto expect_refused = [&](const std::string& job, const std::string& words, const std::string& part) {
    const Ended ended = train(job, "refused", words);
    EXPECT_EQ(ended.status, 2) << words << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, part)) << words << "\n" << ended.output;
  };
  expect_refused("sft", "", "--train_file FILE is missing");
  expect_refused("sft", "--train_file " + out("none.jsonl"), "there is no file or folder");
  expect_refused("sft", "--train_file " + out("alpaca.jsonl") + " --mix a=1", "give one of them");
  expect_refused(
      "lm", "--train_file " + out("alpaca.jsonl"),
      "it has no \"text\" but instruction, input, output: name the column of its text by --text_column_name");
  write_file_atomically(folder_ / "pairs.jsonl", R"({"chosen": "a", "rejected": "b"})");
  expect_refused("sft", "--train_file " + out("pairs.jsonl"), "pairs.jsonl: the columns chosen, rejected are none");
  expect_refused("sft", "--train_file " + out("chats.jsonl") + " --chat_template_path " + out("none.jinja"),
                 "--chat_template_path " + out("none.jinja") + ": there is no");
  expect_refused("lm", "--train_file " + out("text.txt") + " --attention_across_documents --block_size 100000",
                 "give no row of 100000 tokens that can be trained on: give a smaller --max_length");
  write_file_atomically(folder_ / "begins.jsonl",
                        R"({"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]})");
  write_file_atomically(folder_ / "first.jinja",
                        "{{ messages[0]['role'] }}{% for m in messages %}{{ m.content }}{% endfor %}");
  expect_refused(
      "sft",
      "--train_file " + out("begins.jsonl") + " --assistant_only_loss --chat_template_path " + out("first.jinja"),
      "begins.jsonl:1: it begins with the assistant, and the chat template does not tell where");
}

}  // namespace
}  // namespace tessera
