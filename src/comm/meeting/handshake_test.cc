#include "comm/meeting/handshake.h"

#include <gtest/gtest.h>

#include "comm/meeting/message_line.h"
#include "comm/meeting/packet.h"

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
  for (const char byte : sealer.seal("one") + sealer.seal(std::string(100'000, 'x'))) {
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
  const std::string bytes = PacketWriter(Word::kAdd).number(7).text("key").bytes();
  PacketReader good(bytes);
  EXPECT_EQ(good.word(), Word::kAdd);
  EXPECT_EQ(good.number_within(0, 7), 7);
  EXPECT_EQ(good.text(), "key");
  EXPECT_NO_THROW(good.end());
  PacketReader out_of_range(bytes), cut(std::string_view(bytes).substr(0, bytes.size() - 1)), early(bytes);
  out_of_range.word();
  EXPECT_THROW(out_of_range.number_within(0, 6), ProtocolError);
  cut.word();
  cut.number();
  EXPECT_THROW(cut.text(), ProtocolError);
  EXPECT_THROW(early.end(), ProtocolError);
  EXPECT_THROW(PacketReader("").word(), ProtocolError);
}

}  // namespace
}  // namespace tessera
