#include "comm/meeting/handshake.h"

namespace tessera {
namespace {

Key hash_of(const Key& job_key, std::string_view purpose, const Nonces& nonces) {
  return keyed_hash(job_key, {kGreeting, purpose, bytes_of(nonces.server), bytes_of(nonces.client)});
}

Key client_proof(const Key& job_key, const Nonces& nonces) {
  return hash_of(job_key, "client's proof", nonces);
}
Key server_proof(const Key& job_key, const Nonces& nonces) {
  return hash_of(job_key, "server's proof", nonces);
}

}  // namespace

std::string make_challenge(const Key& server_nonce) {
  return std::string(kGreeting).append(bytes_of(server_nonce));
}

std::optional<Key> read_challenge(std::string_view challenge) {
  if (!challenge.starts_with(kGreeting)) return std::nullopt;
  return key_from_bytes(challenge.substr(kGreeting.size()));
}

std::string make_answer(const Key& job_key, const Nonces& nonces) {
  return std::string(bytes_of(nonces.client)).append(bytes_of(client_proof(job_key, nonces)));
}

std::optional<Key> check_answer(const Key& job_key, const Key& server_nonce, std::string_view answer) {
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const auto nonce = key_from_bytes(answer.substr(0, sizeof(Key)));
  const auto proof = key_from_bytes(answer.substr(sizeof(Key)));
  if (!nonce || !proof || !is_equal(*proof, client_proof(job_key, {server_nonce, *nonce}))) return std::nullopt;
  return nonce;
}

std::string make_server_proof(const Key& job_key, const Nonces& nonces) {
  return std::string(bytes_of(server_proof(job_key, nonces)));
}

bool check_server_proof(const Key& job_key, const Nonces& nonces, std::string_view proof) {
  const auto given = key_from_bytes(proof);
  return given && is_equal(*given, server_proof(job_key, nonces));
}

SessionKeys session_keys(const Key& job_key, const Nonces& nonces) {
  return {.to_server = hash_of(job_key, "messages to the server", nonces),
          .to_client = hash_of(job_key, "messages to the client", nonces)};
}

}  // namespace tessera
