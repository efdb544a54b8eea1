// The secret that the ranks of a job share, and how two processes prove to each other that they hold it.
//
// libsodium does the cryptography; handshake.cc is the only file that includes it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/environment.h"

namespace tessera {

// A secret, a key, a random number used once, or a hash.
using Key = std::array<std::uint8_t, 32>;

Key random_key();

// BLAKE2b of the parts, each with its length: two lists of parts never hash alike because their bytes line up.
Key keyed_hash(const Key& key, std::initializer_list<std::string_view> parts);

// Takes as long whichever byte differs.
bool is_equal(const Key& a, const Key& b);

// Overwrites memory that held a secret; the compiler does not remove it.
void wipe(void* memory, std::size_t num_bytes);

std::string to_hex(const Key& key);
// 64 hexadecimal digits, or nothing.
std::optional<Key> key_from_hex(std::string_view text);

// The bytes of a key as they travel, and back; nothing if there are not exactly 32.
std::string_view bytes_of(const Key& key);
std::optional<Key> key_from_bytes(std::string_view bytes);

// How two processes prove to each other that they hold a job's key, without showing it.
//
//   server -> client   greeting, server's nonce
//   client -> server   client's nonce, proof of the client
//   server -> client   proof of the server
//
// Both nonces are random and go into both proofs, so a recorded handshake is worth nothing in another one; the side
// goes into them too, so a proof cannot be sent back to where it came from. Every message has a fixed size. The keys of
// the messages that follow come from the same nonces: one for each direction, new in every connection.

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

// The secret that the ranks of a job share, and strangers do not: where it comes from. docs/security.md tells users.

inline constexpr const char* kSecretVariable = "TESSERA_SECRET";           // 64 hexadecimal digits
inline constexpr const char* kSecretFileVariable = "TESSERA_SECRET_FILE";  // else ~/.config/tessera/secret

// TESSERA_SECRET of this process, if it is set. The first call erases it, from /proc/PID/environ too, so that neither
// children nor `ps e` show it; later calls return the same. Throws UsageError if it is not 64 hexadecimal digits.
std::optional<Key> take_secret_of_environment();

// The secret of the user's file, which is made on first use. Safe between processes of several nodes that share the
// folder: all get the same. Throws UsageError if the file is not this user's, others may read it, or it holds something
// else.
Key secret_of_file(const Environment& environment);
std::filesystem::path secret_file(const Environment& environment);

// The key of one job: from the user's secret, which may serve many jobs, and the job's id.
Key job_key(const Key& secret, const std::string& job_id);

}  // namespace tessera
