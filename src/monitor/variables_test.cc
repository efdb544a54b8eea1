#include "monitor/variables.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(HeededVariables, AreThoseOfTheLibrariesAndNoOthers) {
  const Variables shown = {{"CUDA_VISIBLE_DEVICES", ""}, {"MASTER_ADDR", "a"},          {"NCCL_ANYTHING", "1"},
                           {"TORCH_NCCL_X", "2"},        {"OMP_PLACES", "cores"},       {"UCX_TLS", "tcp"},
                           {"OMPI_MCA_btl", "self"},     {"GLOO_SOCKET_IFNAME", "eth0"}};
  Variables all = shown;
  for (const char* name : {"WANDB_API_KEY", "HOME", "MY_NCCL_DEBUG", "NCCL", "OMPI_COMM_WORLD_RANK", "nccl_debug"}) {
    all[name] = "hunter2";
  }
  EXPECT_EQ(heeded_variables(all), shown);
}

TEST(HeededVariables, WhatMayBeSecretIsOnlySet) {
  const Variables shown =
      heeded_variables({{"OMPI_MCA_orte_precondition_transports", "x"}, {"UCX_API_KEY", "x"}, {"NCCL_IB_PKEY", "1"}});
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
