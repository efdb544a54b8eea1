#include "comm/meeting/secret.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/contains.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class SecretFile : public testing::Test {
 protected:
  std::string refusal() const {
    return error_of([&] { secret_of_file(environment_); });
  }
  template <typename Action>
  static std::string error_of(Action action) {
    try {
      action();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  const TestFolder folder_;
  Environment environment_{{{"HOME", folder_.path().string()}}};
  fs::path file_ = folder_ / ".config" / "tessera" / "secret";
};

TEST_F(SecretFile, IsMadeOnFirstUseForItsUserAlone) {
  const Key secret = secret_of_file(environment_);
  EXPECT_EQ(secret_of_file(environment_), secret);
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(std::distance(fs::directory_iterator(file_.parent_path()), fs::directory_iterator()), 1);
}

TEST_F(SecretFile, IsTheSameForAllWhoMakeItAtOnce) {
  constexpr int kProcesses = 16;
  int results[2];
  ASSERT_EQ(pipe(results), 0);
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() == 0) {
      const std::string line = error_of([&] {
        const std::string hex = to_hex(secret_of_file(environment_));
        (void)!write(results[1], hex.data(), hex.size());
      });
      _exit(line.empty() ? 0 : 1);
    }
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = -1;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  const std::string expected = to_hex(secret_of_file(environment_));
  for (int i = 0; i < kProcesses; ++i) {
    std::string hex(64, ' ');
    ASSERT_EQ(read(results[0], hex.data(), hex.size()), 64);
    EXPECT_EQ(hex, expected);
  }
  close(results[0]);
  close(results[1]);
}

TEST_F(SecretFile, IsRefusedWhenOthersMayReadIt) {
  secret_of_file(environment_);
  for (const mode_t mode : {0644, 0640, 0602}) {
    chmod(file_.c_str(), mode);
    EXPECT_TRUE(contains(refusal(), "others may read or change it")) << refusal();
  }
}

TEST_F(SecretFile, IsRefusedWhenItHoldsSomethingElseOrIsALink) {
  secret_of_file(environment_);
  std::ofstream(file_) << "password\n";
  EXPECT_TRUE(contains(refusal(), "does not hold 64 hexadecimal digits")) << refusal();
  EXPECT_FALSE(contains(refusal(), "password"));
  fs::rename(file_, folder_ / "other");
  fs::create_symlink(folder_ / "other", file_);
  EXPECT_TRUE(contains(refusal(), "it is a link")) << refusal();
  fs::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(), "it is not a file")) << refusal();
}

TEST_F(SecretFile, MayHaveAnotherName) {
  environment_.set("TESSERA_SECRET_FILE", (folder_ / "mine").string());
  secret_of_file(environment_);
  EXPECT_TRUE(fs::exists(folder_ / "mine"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(SecretFile, ThatCannotBeMadeIsNamedWithTheWaysOut) {
  std::ofstream(folder_ / ".config") << "a file where a folder should be";
  const std::string message = refusal();
  EXPECT_TRUE(contains(message, file_.string()) && contains(message, "TESSERA_SECRET_FILE")) << message;
  EXPECT_TRUE(contains(error_of([] { secret_of_file(Environment{}); }), "HOME is not set"));
}

TEST(SecretOfEnvironment, IsErasedWhenItIsTaken) {
  const std::string text(64, 'a');
  std::string variable = "TESSERA_SECRET=" + text;  // lies here, as a process's first variables lie on its stack
  putenv(variable.data());
  EXPECT_EQ(take_secret_of_environment(), key_from_hex(text));
  EXPECT_EQ(getenv("TESSERA_SECRET"), nullptr);
  EXPECT_EQ(variable.find('a'), std::string::npos);
  EXPECT_EQ(take_secret_of_environment(), key_from_hex(text));
}

TEST(SecretOfEnvironment, IsRefusedWithoutBeingShown) {
  setenv("TESSERA_SECRET", "swordfish", 1);
  std::string message;
  try {
    take_secret_of_environment();
  } catch (const std::exception& error) {
    message = error.what();
  }
  EXPECT_TRUE(contains(message, "not 64 hexadecimal digits")) << message;
  EXPECT_FALSE(contains(message, "swordfish"));
}

TEST(JobKey, DiffersFromJobToJob) {
  const Key secret = random_key();
  EXPECT_EQ(job_key(secret, "slurm-7.0"), job_key(secret, "slurm-7.0"));
  EXPECT_NE(job_key(secret, "slurm-7.0"), job_key(secret, "slurm-7.1"));
  EXPECT_NE(job_key(secret, "slurm-7.0"), job_key(random_key(), "slurm-7.0"));
}

}  // namespace
}  // namespace tessera
