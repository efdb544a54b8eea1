// How two processes prove to each other that they hold a job's key, without showing it.
//
//   server -> client   greeting, server's nonce
//   client -> server   client's nonce, proof of the client
//   server -> client   proof of the server
//
// Both nonces are random and go into both proofs, so a recorded handshake is worth nothing in another one; the side
// goes into them too, so a proof cannot be sent back to where it came from. Every message has a fixed size. The keys of
// the messages that follow come from the same nonces: one for each direction, new in every connection.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "comm/meeting/keyed_hash.h"

namespace tessera {

// Says that this is Tessera, and which version of the protocol; nothing about the job.
inline constexpr std::string_view kGreeting = "TESSERA2";
inline constexpr std::size_t kChallengeBytes = kGreeting.size() + sizeof(Key);
inline constexpr std::size_t kAnswerBytes = 2 * sizeof(Key);
inline constexpr std::size_t kProofBytes = sizeof(Key);

struct Nonces {
  Key server{}, client{};
};

struct SessionKeys {
  Key to_server{}, to_client{};
};

std::string make_challenge(const Key& server_nonce);
// The server's nonce; nothing if something else than Tessera speaks.
std::optional<Key> read_challenge(std::string_view challenge);

std::string make_answer(const Key& job_key, const Nonces& nonces);
// The client's nonce; nothing if the client does not hold the key.
std::optional<Key> check_answer(const Key& job_key, const Key& server_nonce, std::string_view answer);

std::string make_server_proof(const Key& job_key, const Nonces& nonces);
bool check_server_proof(const Key& job_key, const Nonces& nonces, std::string_view proof);

SessionKeys session_keys(const Key& job_key, const Nonces& nonces);

}  // namespace tessera
