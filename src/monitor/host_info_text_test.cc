#include <gtest/gtest.h>

#include "core/host.h"
#include "monitor/host_info.h"

namespace tessera {
namespace {

using Names = std::vector<std::string>;

TEST(OsRelease, GivesThePrettyName) {
  EXPECT_EQ(parse_os_name("NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_os_name("NAME=Arch\nPRETTY_NAME=\n"), "Arch");
  EXPECT_EQ(parse_os_name("PRETTY_NAME='A B'"), "A B");
  EXPECT_EQ(parse_os_name(""), std::nullopt);
  EXPECT_EQ(parse_os_name("\xff\xfe=\n==\n\""), std::nullopt);
}

TEST(CpuInfoText, NamesTheModelAndCountsProcessors) {
  const CpuInfo intel = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6148\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R)\n");
  EXPECT_EQ(intel.model, "Intel(R) Xeon(R) Gold 6148");
  EXPECT_EQ(intel.num_processors, 2);
  const CpuInfo arm = parse_cpuinfo("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  EXPECT_EQ(arm.model, "ARM Neoverse-V1");
  EXPECT_EQ(parse_cpuinfo("CPU implementer: 0x99\nCPU part: 0x001\n").model, "ARM, implementer 0x99, part 0x001");
  EXPECT_EQ(parse_cpuinfo("nonsense").model, std::nullopt);
  EXPECT_EQ(parse_cpuinfo("").num_processors, 0);
}

TEST(Meminfo, IsInBytes) {
  const std::string text = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   22016520 kB\n";
  EXPECT_EQ(parse_meminfo(text, "MemTotal"), std::int64_t{24576000} * 1024);
  EXPECT_EQ(parse_meminfo(text, "MemAvailable"), std::int64_t{22016520} * 1024);
  EXPECT_EQ(parse_meminfo(text, "Mem"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal: many kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal: 9223372036854775807 kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal:", "MemTotal"), std::nullopt);
}

TEST(CgroupText, LimitsAreNumbersOrNone) {
  EXPECT_EQ(parse_cgroup_limit("1073741824\n"), 1 << 30);
  EXPECT_EQ(parse_cgroup_limit("max\n"), std::nullopt);
  EXPECT_EQ(parse_cgroup_limit("9223372036854771712\n"), std::nullopt);  // version 1's word for none
  EXPECT_EQ(parse_cgroup_limit(""), std::nullopt);
  EXPECT_EQ(parse_cgroup_limit("-1"), std::nullopt);
}

TEST(CgroupText, QuotasAreCores) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("200000\n", "100000\n"), 2);
  EXPECT_EQ(parse_cpu_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("1", "0"), std::nullopt);
}

TEST(CgroupText, FindsTheFolderOfEitherVersion) {
  const std::string text = "4:memory,hugetlb:/jobs/a:b\n1:cpu:/\n0::/user.slice\n";
  EXPECT_EQ(parse_cgroup_path(text, "memory"), "/jobs/a:b");
  EXPECT_EQ(parse_cgroup_path(text, "cpu"), "/");
  EXPECT_EQ(parse_cgroup_path(text, ""), "/user.slice");
  EXPECT_EQ(parse_cgroup_path(text, "pids"), std::nullopt);
  EXPECT_EQ(parse_cgroup_path("garbage\n:\n", ""), std::nullopt);
}

TEST(StatText, GivesTheNamedLine) {
  EXPECT_EQ(named_number("active_file 1\ninactive_file 4096\n", "inactive_file"), 4096);
  EXPECT_EQ(named_number("inactive_file\n", "inactive_file"), std::nullopt);
}

TEST(SelectNames, ReadsPrefixesExactNamesAndExclusionsAsNcclDoes) {
  const Names here = {"lo", "eth0", "eth1", "ib0"};
  EXPECT_EQ(select_names("eth", here), (Names{"eth0", "eth1"}));
  EXPECT_EQ(select_names("ib0,eth1", here), (Names{"eth1", "ib0"}));
  EXPECT_EQ(select_names("=eth", here), Names{});
  EXPECT_EQ(select_names("=eth0,ib0", here), (Names{"eth0", "ib0"}));
  EXPECT_EQ(select_names("^lo,eth", here), Names{"ib0"});
  EXPECT_EQ(select_names("^=eth0", here), (Names{"lo", "eth1", "ib0"}));
  EXPECT_EQ(select_names("ib1", here), Names{});
  EXPECT_EQ(select_names("", here), Names{});
  EXPECT_EQ(select_names("mlx5_0:1", {"mlx5_0", "mlx5_1"}), Names{"mlx5_0"});
}

}  // namespace
}  // namespace tessera
