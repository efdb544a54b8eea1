#include "comm/meeting/handshake.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "comm/meeting/message_line.h"
#include "support/contains.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

struct Both {
  Key job = random_key();
  Nonces nonces{random_key(), random_key()};
};

TEST(Handshake, EachSideRecognisesTheOtherByTheKey) {
  const Both both;
  EXPECT_EQ(read_challenge(make_challenge(both.nonces.server)), both.nonces.server);
  EXPECT_EQ(check_answer(both.job, both.nonces.server, make_answer(both.job, both.nonces)), both.nonces.client);
  EXPECT_TRUE(check_server_proof(both.job, both.nonces, make_server_proof(both.job, both.nonces)));
}

TEST(Handshake, AWrongKeyIsRefusedByBothSides) {
  const Both both;
  Key wrong = both.job;
  wrong.back() ^= 1;
  EXPECT_FALSE(check_answer(both.job, both.nonces.server, make_answer(wrong, both.nonces)));
  EXPECT_FALSE(check_server_proof(both.job, both.nonces, make_server_proof(wrong, both.nonces)));
}

TEST(Handshake, ARecordedAnswerIsWorthNothingInAnotherHandshake) {
  const Both both;
  const std::string recorded = make_answer(both.job, both.nonces);
  EXPECT_FALSE(check_answer(both.job, random_key(), recorded));
  const std::string proof = make_server_proof(both.job, both.nonces);
  EXPECT_FALSE(check_server_proof(both.job, {both.nonces.server, random_key()}, proof));
}

TEST(Handshake, AProofSentBackToItsSenderIsRefused) {
  const Both both;
  const std::string answer = make_answer(both.job, both.nonces);
  EXPECT_FALSE(check_server_proof(both.job, both.nonces, answer.substr(sizeof(Key))));
  const std::string reflected = std::string(bytes_of(both.nonces.client)) + make_server_proof(both.job, both.nonces);
  EXPECT_FALSE(check_answer(both.job, both.nonces.server, reflected));
}

TEST(Handshake, AnythingOfAnotherSizeIsRefused) {
  const Both both;
  const std::string answer = make_answer(both.job, both.nonces);
  for (const std::string& wrong : {std::string(), answer.substr(1), answer + "x"}) {
    EXPECT_FALSE(check_answer(both.job, both.nonces.server, wrong));
  }
  EXPECT_FALSE(read_challenge("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_FALSE(read_challenge(make_challenge(both.nonces.server) + "x"));
}

TEST(Handshake, EveryConnectionAndDirectionHasItsOwnKeys) {
  const Both both;
  const SessionKeys keys = session_keys(both.job, both.nonces);
  EXPECT_NE(keys.to_server, keys.to_client);
  EXPECT_NE(keys.to_server, session_keys(both.job, {random_key(), both.nonces.client}).to_server);
}

TEST(KeyedHash, PartsDoNotRunIntoEachOther) {
  const Key key = random_key();
  EXPECT_NE(keyed_hash(key, {"ab", "c"}), keyed_hash(key, {"a", "bc"}));
  EXPECT_EQ(keyed_hash(key, {"ab", "c"}), keyed_hash(key, {"ab", "c"}));
  EXPECT_EQ(key_from_hex(to_hex(key)), key);
  EXPECT_FALSE(key_from_hex(to_hex(key).substr(1)));
  EXPECT_FALSE(key_from_hex(std::string(64, 'x')));
}

TEST(Messages, ArriveWholeAndInOrderHoweverTheyAreCut) {
  const Key key = random_key();
  MessageSealer sealer(key);
  MessageOpener opener(key);
  std::vector<std::string> got;
  const std::string first = sealer.seal("one"), second = sealer.seal(std::string(100'000, 'x'));
  for (const char byte : first + second) {
    opener.add({&byte, 1});
    if (const auto message = opener.next()) got.push_back(*message);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"one", std::string(100'000, 'x')}));
}

TEST(Messages, ThatWereChangedReplayedOrLeftOutAreRefused) {
  const Key key = random_key();
  MessageSealer sealer(key);
  const std::string first = sealer.seal("set a 1"), second = sealer.seal("set a 2");
  std::string changed = first;
  changed[5] ^= 1;
  const auto refuses = [&](const std::string& bytes, int num_good) {
    MessageOpener opener(key);
    opener.add(bytes);
    for (int i = 0; i < num_good; ++i) EXPECT_TRUE(opener.next());
    EXPECT_THROW(opener.next(), ProtocolError);
  };
  refuses(changed, 0);
  refuses(second, 0);
  refuses(first + first, 1);
}

TEST(Messages, WithALengthThatIsNotAllowedAreRefusedBeforeTheyArrive) {
  MessageOpener opener(random_key());
  opener.add("\xff\xff\xff\x7f");
  EXPECT_THROW(opener.next(), ProtocolError);
  MessageSealer sealer(random_key());
  EXPECT_THROW(sealer.seal(""), ProtocolError);
  EXPECT_THROW(sealer.seal(std::string(kMostMessageBytes + 1, 'x')), ProtocolError);
}

TEST(Packet, FieldsAreCheckedAgainstWhatIsThere) {
  const std::string bytes = PacketWriter(MessageType::kAdd).number(7).text("key").bytes();
  PacketReader good(bytes);
  EXPECT_EQ(good.type(), MessageType::kAdd);
  EXPECT_EQ(good.number_within(0, 7), 7);
  EXPECT_EQ(good.text(), "key");
  EXPECT_NO_THROW(good.end());
  PacketReader out_of_range(bytes), cut(std::string_view(bytes).substr(0, bytes.size() - 1)), early(bytes);
  out_of_range.type();
  EXPECT_THROW(out_of_range.number_within(0, 6), ProtocolError);
  cut.type();
  cut.number();
  EXPECT_THROW(cut.text(), ProtocolError);
  EXPECT_THROW(early.end(), ProtocolError);
  EXPECT_THROW(PacketReader("").type(), ProtocolError);
}

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
