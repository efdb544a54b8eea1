#include "experiment/import/launch_line.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace tessera {
namespace {

std::optional<LaunchLine> launch_of(const std::string& text) {
  const ShellVariables none;
  ShellValues words;
  const ShellCommand command = split_shell(text, "s").at(0);
  for (const ShellWord& word : command.words) {
    for (ShellValue& value : none.expand(word)) words.push_back(std::move(value));
  }
  return read_launch_line(without_wrappers(words));
}

std::string arguments_shown(const LaunchLine& line) {
  std::vector<std::string> words;
  for (const ShellValue& word : line.arguments) words.push_back(word.text);
  return join(words, " ");
}

void expect_launch(const std::string& text, const std::string& shown, const std::string& arguments) {
  const auto line = launch_of(text);
  ASSERT_TRUE(line) << text;
  EXPECT_EQ(line->shown(), shown) << text;
  EXPECT_EQ(arguments_shown(*line), arguments) << text;
}

TEST(LaunchLine, KnowsEveryLauncher) {
  expect_launch("python -u train.py --a 1", "python train.py", "--a 1");
  expect_launch("/opt/bin/python3.11 -m pkg.train --a 1", "python pkg.train", "--a 1");
  expect_launch("srun -N 2 --ntasks-per-node=4 --kill-on-bad-exit python train.py x", "srun python train.py", "x");
  expect_launch("torchrun --nnodes 2 --nproc-per-node=4 train.py --a 1", "torchrun train.py", "--a 1");
  expect_launch("python -m torch.distributed.run --standalone --nproc_per_node gpu train.py", "torchrun train.py", "");
  expect_launch("python -m torch.distributed.launch --use_env --nproc_per_node 2 train.py", "torchrun train.py", "");
  expect_launch("deepspeed --num_gpus=4 --hostfile hosts train.py --deepspeed ds.json", "deepspeed train.py",
                "--deepspeed ds.json");
  expect_launch("accelerate launch --multi_gpu --num_processes 4 train.py --b", "accelerate train.py", "--b");
  expect_launch("mpirun -np 4 --bind-to none -x PATH --mca btl tcp,self python train.py", "mpirun python train.py", "");
}

TEST(LaunchLine, SeesThroughWhatStandsBeforeIt) {
  expect_launch("CUDA_VISIBLE_DEVICES=0,1 time torchrun train.py", "torchrun train.py", "");
  expect_launch("srun singularity exec --nv -B /data image.sif python train.py --a", "srun python train.py", "--a");
  expect_launch("timeout 3600 env A=b python train.py", "python train.py", "");
  expect_launch("conda run -n x --no-capture-output python train.py", "python train.py", "");
  EXPECT_EQ(launch_of("A=1 B=2 python t.py")->command.variables.size(), 2U);
}

TEST(LaunchLine, CountsComeFromOptionsThatAreKnown) {
  const auto line = launch_of("torchrun --nnodes=2 --nproc_per_node $N train.py");
  EXPECT_EQ(line->count("nnodes"), 2);
  EXPECT_EQ(line->count("nproc_per_node"), std::nullopt);
}

TEST(LaunchLine, OtherCommandsAreNoLaunch) {
  for (const char* text : {"python -c 'print(1)'", "python", "echo python train.py", "pip install torch",
                           "accelerate config", "python -m pip install x", "nvidia-smi", "torchrun --standalone"}) {
    EXPECT_FALSE(launch_of(text)) << text;
  }
}

TEST(LaunchLine, AShellsTextIsGivenBackAsAScript) {
  ShellValues words = {{"srun"}, {"-N2"}, {"bash"}, {"-lc"}, {"python train.py"}};
  const BareCommand command = without_wrappers(words);
  EXPECT_EQ(command.script, "python train.py");
  EXPECT_EQ(command.wrapper, "srun");
  EXPECT_TRUE(command.words.empty());
}

}  // namespace
}  // namespace tessera
