#include "monitor/machine_facts.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// A machine without problems: one GPU, eight cores.
MachineFacts sound_machine() {
  MachineFacts facts;
  facts.host.cpu.num_processors = 8;
  facts.num_usable_processors = facts.num_usable_cores = 8;
  facts.host.memory.total_bytes = std::int64_t{64} << 30;
  facts.host.memory.shm_total_bytes = facts.host.memory.shm_available_bytes = std::int64_t{32} << 30;
  facts.host.interfaces = {{"lo", true, true, {}, {}}, {"eth0", true, false, {}, {}}, {"ib1", false, false, {}, {}}};
  facts.gpus = {{"NVIDIA H200", "9.0", std::int64_t{140} << 30, {true}}};
  facts.torch_has_cuda = facts.has_cuda_flavour = facts.has_nvidia_driver = true;
  facts.mpirun_path = "/usr/bin/mpirun";
  facts.rank_meaning = "rank 0 of 1";
  return facts;
}

std::vector<std::string> found(const MachineFacts& facts) {
  std::vector<std::string> texts;
  for (const Problem& problem : find_problems(facts)) {
    EXPECT_FALSE(problem.advice.empty()) << problem.what;
    texts.push_back(problem.what);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Advice, ASoundMachineGetsNone) {
  EXPECT_EQ(found(sound_machine()), Texts{});
}

TEST(Advice, NothingKnownIsNoFailure) {
  EXPECT_EQ(found(MachineFacts{}), (Texts{"no GPU: CPU flavour", "there is no /dev/shm", "no mpirun in PATH"}));
}

TEST(Advice, SaysWhyThereIsNoGpu) {
  MachineFacts facts = sound_machine();
  facts.gpus.clear();
  facts.has_cuda_flavour = false;
  EXPECT_EQ(found(facts), Texts{"the GPU is not used: this build is the CPU flavour"});
  facts.has_nvidia_driver = false;
  EXPECT_EQ(found(facts), Texts{"no GPU: CPU flavour"});
  facts.host.num_nvidia_devices = 2;
  EXPECT_EQ(found(facts), Texts{"2 NVIDIA GPUs on the PCI bus, but no driver: CPU flavour"});
  facts.host.num_nvidia_devices = 0;
  facts.has_cuda_flavour = true;
  EXPECT_EQ(found(facts), (Texts{"no GPU: CPU flavour", "torch and this build can use CUDA, but there is no driver"}));
}

TEST(Advice, RanksThatShareAreNamed) {
  MachineFacts facts = sound_machine();
  facts.num_ranks_here = 2;
  EXPECT_EQ(found(facts), Texts{"2 ranks would share 1 GPU"});
  facts.gpus.clear();
  facts.num_usable_cores = 1;
  EXPECT_EQ(found(facts), (Texts{"no GPU: CPU flavour", "2 ranks would share 1 core"}));
  facts.num_usable_cores = 8;
  facts.host.cpu.quota = 1.5;
  EXPECT_EQ(usable_cores(facts), 2);
  facts.num_ranks_here = 3;
  EXPECT_EQ(found(facts), (Texts{"no GPU: CPU flavour", "3 ranks would share 2 cores",
                                 "the cgroup allows the CPU time of 1.5 cores, but 8 processors are visible"}));
}

TEST(Advice, ThreadsThatShareAreNamed) {
  MachineFacts facts = sound_machine();
  facts.variables["OMP_NUM_THREADS"] = "8";
  EXPECT_EQ(found(facts), Texts{});
  facts.variables["OMP_NUM_THREADS"] = "9";
  EXPECT_EQ(found(facts), Texts{"OMP_NUM_THREADS=9 with 1 rank is 9 threads on 8 cores"});
  facts.variables["OMP_NUM_THREADS"] = "all";
  EXPECT_EQ(found(facts), Texts{"OMP_NUM_THREADS=all is not a number of threads"});
  facts.variables["OMP_NUM_THREADS"] = "4,2";  // nested levels: the first is ours
  EXPECT_EQ(found(facts), Texts{});
  facts.variables["OMP_NUM_THREADS"] = "1";  // cannot be less
  facts.num_usable_cores = 1;
  facts.num_ranks_here = 2;
  EXPECT_EQ(found(facts), Texts{"2 ranks would share 1 GPU"});
}

TEST(Advice, SmallMemoryIsNamed) {
  MachineFacts facts = sound_machine();
  facts.host.memory.cgroup_limit_bytes = std::int64_t{8} << 30;
  EXPECT_EQ(found(facts), Texts{"the cgroup allows 8 GiB of the host's 64 GiB"});
  facts.host.memory.cgroup_limit_bytes.reset();
  facts.host.memory.shm_total_bytes = facts.host.memory.shm_available_bytes = 64 << 20;
  EXPECT_EQ(found(facts), Texts{"/dev/shm is small: 64 MiB of 64 MiB free"});
}

TEST(Advice, InterfacesThatAreNotHereAreNamed) {
  MachineFacts facts = sound_machine();
  for (const char* good : {"eth", "ib0,eth0", "=eth0", "^lo", "^=ib1", "eth0:2"}) {
    facts.variables["NCCL_SOCKET_IFNAME"] = good;
    EXPECT_EQ(found(facts), Texts{}) << good;
  }
  facts.variables["NCCL_SOCKET_IFNAME"] = "ib0";
  EXPECT_EQ(found(facts), Texts{"NCCL_SOCKET_IFNAME=ib0 matches no interface here"});
  EXPECT_EQ(find_problems(facts).front().advice,
            "available: lo, eth0, ib1; name one that the other nodes can reach, or unset it");
  facts.variables["NCCL_SOCKET_IFNAME"] = "=eth";
  EXPECT_EQ(found(facts), Texts{"NCCL_SOCKET_IFNAME==eth matches no interface here"});
  facts.variables["NCCL_SOCKET_IFNAME"] = "^lo,eth,ib";
  EXPECT_EQ(found(facts), Texts{"NCCL_SOCKET_IFNAME=^lo,eth,ib excludes every interface here"});
  facts.variables["NCCL_SOCKET_IFNAME"] = "ib";
  EXPECT_EQ(found(facts), Texts{"NCCL_SOCKET_IFNAME=ib matches only interfaces that are down"});
  facts.variables.clear();
  facts.variables["NCCL_IB_HCA"] = "mlx5";
  EXPECT_EQ(found(facts), Texts{"NCCL_IB_HCA=mlx5 matches no InfiniBand device here"});
  facts.host.infiniband_devices = {"mlx5_0"};
  EXPECT_EQ(found(facts), Texts{});
}

TEST(Advice, MistakesOfTheEnvironmentAreNamed) {
  MachineFacts facts = sound_machine();
  facts.rank_mistake = "RANK=1, but OMPI_COMM_WORLD_RANK=0";
  facts.slurm_mistake = "unbalanced brackets";
  facts.variables["MASTER_ADDR"] = "nowhere";
  facts.master_addr_mistake = "Name or service not known";
  facts.mpirun_path.clear();
  EXPECT_EQ(found(facts),
            (Texts{"the rank variables are invalid", "Slurm's node list cannot be read",
                   "MASTER_ADDR=nowhere cannot be resolved: Name or service not known", "no mpirun in PATH"}));
}

TEST(Advice, AWorldSizeAloneIsIgnoredByTheLauncher) {
  MachineFacts facts = sound_machine();
  facts.rank_mistake = "WORLD_SIZE is set, but RANK is not";
  facts.rank_variables["WORLD_SIZE"] = "4";
  ASSERT_EQ(found(facts), Texts{"the rank variables are invalid"});
  EXPECT_EQ(find_problems(facts).front().advice, "WORLD_SIZE is set, but RANK is not (`tessera launch` ignores it)");
  facts.rank_variables["RANK"] = "x";
  EXPECT_EQ(find_problems(facts).front().advice, "WORLD_SIZE is set, but RANK is not");
}

TEST(Advice, VariablesThatCannotBeMeantSoAreNamed) {
  MachineFacts facts = sound_machine();
  facts.variables = {{"MASTER_PORT", "29500"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"TESSERA_LOG", "debug,all"}};
  EXPECT_EQ(found(facts), Texts{});
  facts.variables = {{"MASTER_PORT", "http"}, {"CUDA_VISIBLE_DEVICES", "first"}, {"TESSERA_LOG", "loud"}};
  facts.misspelt_variables = {{"NCCL_DEBGU", "NCCL_DEBUG"}};
  EXPECT_EQ(found(facts),
            (Texts{"MASTER_PORT=http is not a port", "no known program reads NCCL_DEBGU",
                   "CUDA_VISIBLE_DEVICES=first: 'first' is not a GPU number", "TESSERA_LOG=loud is not a log level"}));
  EXPECT_EQ(find_problems(facts)[1].advice, "did you mean NCCL_DEBUG?");
  facts = sound_machine();
  facts.variables = {{"CUDA_VISIBLE_DEVICES", ""}};
  EXPECT_EQ(found(facts), Texts{"CUDA_VISIBLE_DEVICES= hides every GPU"});
  facts.variables = {{"OMP_NUM_THREADS", "a\x1b" + std::string(1000, 'x')}};
  EXPECT_EQ(found(facts), Texts{"OMP_NUM_THREADS=a\\x1b" + std::string(195, 'x') + "... is not a number of threads"});
}

TEST(HeededVariables, AreThoseOfTheLibrariesAndNoOthers) {
  const Variables shown = {{"CUDA_VISIBLE_DEVICES", ""}, {"MASTER_ADDR", "a"},          {"NCCL_ANYTHING", "1"},
                           {"TORCH_NCCL_X", "2"},        {"OMP_PLACES", "cores"},       {"UCX_TLS", "tcp"},
                           {"OMPI_MCA_btl", "self"},     {"GLOO_SOCKET_IFNAME", "eth0"}};
  Variables all = shown;
  for (const char* name : {"WANDB_API_KEY", "HOME", "MY_NCCL_DEBUG", "NCCL", "OMPI_COMM_WORLD_RANK", "nccl_debug"}) {
    all[name] = "hunter2";
  }
  EXPECT_EQ(shown_variables(all), shown);
}

TEST(HeededVariables, WhatMayBeSecretIsOnlySet) {
  const Variables shown =
      shown_variables({{"OMPI_MCA_orte_precondition_transports", "x"}, {"UCX_API_KEY", "x"}, {"NCCL_IB_PKEY", "1"}});
  EXPECT_EQ(shown.at("OMPI_MCA_orte_precondition_transports"), "(set)");
  EXPECT_EQ(shown.at("UCX_API_KEY"), "(set)");
  EXPECT_EQ(shown.at("NCCL_IB_PKEY"), "1");
}

TEST(MisspeltVariables, AreToldWhatWasMeant) {
  const Variables found = misspelt_variables({{"NCCL_DEBGU", "INFO"},
                                              {"NCLL_DEBUG", "INFO"},
                                              {"NCCL_SOCKET_IFNAMES", "eth0"},
                                              {"TORCH_NCCL_ASYNC_ERROR_HANDLNG", "1"}});
  EXPECT_EQ(found, (Variables{{"NCCL_DEBGU", "NCCL_DEBUG"},
                              {"NCLL_DEBUG", "NCCL_DEBUG"},
                              {"NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"},
                              {"TORCH_NCCL_ASYNC_ERROR_HANDLNG", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}}));
}

TEST(MisspeltVariables, RightAndUnrelatedNamesAreLeftAlone) {
  const Variables found = misspelt_variables({{"NCCL_DEBUG", "INFO"},
                                              {"NCCL_IB_SL", "0"},
                                              {"NCCL_IB_TC", "0"},
                                              {"TORCH_NCCL_BLOCKING_WAIT", "0"},
                                              {"NCCL_QUITE_NEW_FEATURE", "0"},
                                              {"GCC_DEBUG", "0"},
                                              {"DEBUG", "0"},
                                              {"NCC_THING", "0"},
                                              {"PATH", "/bin"}});
  EXPECT_EQ(found, Variables{});
}

TEST(VisibleDevices, NumbersAndIdentifiersAreRight) {
  for (const char* value : {"0", "0,1", "3, 2", "GPU-8932f937-d72c", "MIG-1/2", "0,-1,x", "", "-1", "NoDevFiles"}) {
    EXPECT_FALSE(visible_devices_mistake(value)) << value;
  }
  EXPECT_EQ(visible_devices_mistake("nonsense"), "'nonsense' is not a GPU number");
  EXPECT_EQ(visible_devices_mistake("0,,1"), "'' is not a GPU number");
  EXPECT_EQ(visible_devices_mistake("0-3"), "'0-3' is not a GPU number");
  EXPECT_EQ(visible_devices_mistake("1,0,1"), "1 appears twice");
}

TEST(VisibleDevices, SomeValuesHideEveryGpu) {
  for (const char* value : {"", " ", "-1", "-1,0", "NoDevFiles"}) EXPECT_TRUE(hides_every_gpu(value)) << value;
  for (const char* value : {"0", "0,-1", "GPU-1"}) EXPECT_FALSE(hides_every_gpu(value)) << value;
}

TEST(Port, IsANumberFrom1To65535) {
  for (const char* value : {"1", "29500", "65535"}) EXPECT_TRUE(is_port(value)) << value;
  for (const char* value : {"", "0", "65536", "-1", "http", "29500 "}) EXPECT_FALSE(is_port(value)) << value;
}

}  // namespace

}  // namespace tessera
