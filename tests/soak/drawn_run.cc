#include "soak/drawn_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace tessera::testing {
namespace {

const std::string kData = TESSERA_TEST_DATA_FOLDER;
const std::string kSource = TESSERA_SOURCE_FOLDER;

// Each trains for a second or two and saves all the time.
const std::map<std::string, std::string> kJobs = {
    {"gpt-qa", fmt::format("--tokenizer_name {0}/squad/tokenizer --train_file {0}/squad/sample.jsonl --max_length 96 "
                           "--seq_length 96 --vocab_size 500 --hidden_size 32 --num_layers 2 --num_heads 4 --ff_dim 48 "
                           "--max_train_samples 24 --per_device_train_batch_size 2 --dropout 0.1 --max_steps 80 "
                           "--save_steps 3",
                           kData)},
    {"bloom-qa", fmt::format("--config_name {0}/train_command/bloom.json --tokenizer_name {0}/squad/tokenizer "
                             "--train_file {0}/squad/sample.jsonl --max_length 160 --max_train_samples 24 "
                             "--per_device_train_batch_size 2 --gradient_accumulation_steps 2 --learning_rate 1e-3 "
                             "--max_steps 40 --save_steps 3",
                             kData)},
    {"resnet-tinyimagenet", fmt::format("--data_dir {}/experiments/tiny/pictures --image_size 32 --batch_size 2 "
                                        "--max_train_samples 24 --max_eval_samples 2 --epochs 1 --save_steps 2",
                                        kSource)},
};

const std::vector<std::string> kSplitting = {"zero1", "zero2", "zero3", "full_shard", "shard_grad_op", "hybrid_shard"};
const std::vector<std::string> kCopying = {"ddp", "zero0", "no_shard"};

std::string draw_more(const DrawnRun& run, std::mt19937& random) {
  std::string more;
  const bool splits = std::find(kSplitting.begin(), kSplitting.end(), run.strategy) != kSplitting.end();
  if (splits && random() % 3 == 0) more += " --offload_optimizer";
  const bool splits_parameters = run.strategy == "zero3" || run.strategy == "full_shard";
  if (splits_parameters && random() % 3 == 0) more += " --offload_param";
  // A processor without float16 instructions takes its time.
  const std::vector<std::string> precisions = {"", "", " --fp16 --max_steps 9", " --bf16"};
  if (run.job != "resnet-tinyimagenet") more += draw(precisions, random);
  more += draw(std::vector<std::string>{"", "", " --save_mode disabled"}, random);
  return more;
}

}  // namespace

DrawnRun draw_run(std::mt19937& random) {
  DrawnRun run;
  run.job = draw(std::vector<std::string>{"gpt-qa", "gpt-qa", "bloom-qa", "bloom-qa", "resnet-tinyimagenet"}, random);
  run.num_ranks = draw(std::vector<int>{1, 2, 2, 2, 3, 3, 4}, random);
  if (run.job == "resnet-tinyimagenet") run.num_ranks = std::min(run.num_ranks, 2);
  if (run.num_ranks == 1) {
    run.strategy = "single";
    run.starter = draw(std::vector<Starter>{Starter::kAlone, Starter::kLaunch}, random);
  } else {
    run.strategy = random() % 4 == 0 ? draw(kCopying, random) : draw(kSplitting, random);
    run.starter = draw(std::vector<Starter>{Starter::kLaunch, Starter::kLaunch, Starter::kLaunch, Starter::kMpirun,
                                            Starter::kLooseMpi},
                       random);
  }
  run.more = draw_more(run, random);
  return run;
}

std::string DrawnRun::name() const {
  const char* const starters[] = {"alone", "launch", "mpirun", "loose mpirun"};
  return fmt::format("{} {} x{} {}{}", job.substr(0, job.find('-')), strategy, num_ranks,
                     starters[static_cast<int>(starter)], more);
}

Words DrawnRun::command(const std::filesystem::path& output, int port) const {
  std::string before;
  if (starter == Starter::kLaunch) {
    before = fmt::format("{} launch --nproc_per_node {} --master_port {}", tessera_binary(), num_ranks, port);
  } else if (starter != Starter::kAlone) {
    before = fmt::format("{} --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1{} -np {}",
                         TESSERA_MPIRUN, starter == Starter::kLooseMpi ? " --enable-recovery" : "", num_ranks);
  }
  std::istringstream line(fmt::format(
      "{} {} train {} --device cpu --strategy {} --output_dir {} --disable_tqdm --report_to none --logging_steps 1 "
      "--save_strategy steps --save_total_limit 2 --comm_timeout {}s --start_timeout {}s {}{}",
      before, tessera_binary(), job, strategy, output.string(), kCommLimit.count(), kStartLimit.count(), kJobs.at(job),
      more));
  Words words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

}  // namespace tessera::testing
