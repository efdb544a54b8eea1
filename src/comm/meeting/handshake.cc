#include "comm/meeting/handshake.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

// Must be called before anything else of the library; any number of times, from any thread.
void start_sodium() {
  if (sodium_init() < 0) throw Error("libsodium cannot be started: this system gives no random numbers");
}

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Key hash_of(const Key& job_key, std::string_view purpose, const Nonces& nonces) {
  return keyed_hash(job_key, {kGreeting, purpose, bytes_of(nonces.server), bytes_of(nonces.client)});
}

constexpr const char *kClientProof = "client's proof", *kServerProof = "server's proof";

namespace fs = std::filesystem;

constexpr const char* kMakeOne = "remove it, and the next run makes a new one";

UsageError file_mistake(const fs::path& path, const std::string& mistake) {
  return UsageError(fmt::format("the secret file {}: {}", path.string(), mistake));
}

// Nothing if there is no such file.
std::optional<Key> read_secret(const fs::path& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file && errno == ELOOP) throw file_mistake(path, "it is a link; name the file itself");
  if (!file) throw file_mistake(path, std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw file_mistake(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw file_mistake(path, "it is not a file");
  if (status.st_uid != geteuid()) throw file_mistake(path, "it belongs to another user");
  if ((status.st_mode & 077) != 0) {
    throw file_mistake(path, fmt::format("others may read or change it (mode {:04o}): it is no longer secret; {}",
                                         status.st_mode & 07777, kMakeOne));
  }
  std::string text(256, '\0');
  const ssize_t count = read(file.get(), text.data(), text.size());
  if (count < 0) throw file_mistake(path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(count));
  const auto key = key_from_hex(trim(text));
  wipe(text.data(), text.size());
  if (!key) throw file_mistake(path, fmt::format("it does not hold 64 hexadecimal digits; {}", kMakeOne));
  return key;
}

// Writes a whole file beside the target, then gives it the name, which fails if another process was first. So readers
// see a whole secret or none, on NFS too.
void make_secret(const fs::path& path) {
  std::error_code error;
  if (!is_there(path.parent_path())) {
    fs::create_directories(path.parent_path(), error);
    if (!error) fs::permissions(path.parent_path(), fs::perms::owner_all, error);
  }
  const fs::path draft = fmt::format("{}.{}.{}", path.string(), host_name(), getpid());
  unlink(draft.c_str());
  const Fd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  std::string text = to_hex(random_key()) + "\n";
  const bool is_written = file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                          fsync(file.get()) == 0;
  wipe(text.data(), text.size());
  int reason = is_written ? 0 : errno;
  if (is_written && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) reason = errno;
  unlink(draft.c_str());
  if (reason != 0) {
    throw UsageError(fmt::format(
        "cannot make the secret file {}: {}. Name another by {}, or give all ranks the same {} (64 hexadecimal digits)",
        path.string(), std::strerror(reason), kSecretFileVariable, kSecretVariable));
  }
}

}  // namespace

Key random_key() {
  start_sodium();
  Key key;
  randombytes_buf(key.data(), key.size());
  return key;
}

Key keyed_hash(const Key& key, std::initializer_list<std::string_view> parts) {
  start_sodium();
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), Key{}.size());
  for (const std::string_view part : parts) {
    std::array<unsigned char, 8> size{};
    for (std::size_t i = 0; i < size.size(); ++i) size[i] = static_cast<unsigned char>(part.size() >> (8 * i));
    crypto_generichash_update(&state, size.data(), size.size());
    crypto_generichash_update(&state, raw(part), part.size());
  }
  Key hash;
  crypto_generichash_final(&state, hash.data(), hash.size());
  sodium_memzero(&state, sizeof state);
  return hash;
}

bool is_equal(const Key& a, const Key& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(void* memory, std::size_t num_bytes) {
  sodium_memzero(memory, num_bytes);
}

std::string to_hex(const Key& key) {
  std::string text(2 * key.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
  text.pop_back();
  return text;
}

std::optional<Key> key_from_hex(std::string_view text) {
  Key key;
  std::size_t num_bytes = 0;
  if (text.size() != 2 * key.size()) return std::nullopt;
  const int code =
      sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &num_bytes, /*hex_end=*/nullptr);
  if (code != 0 || num_bytes != key.size()) return std::nullopt;
  return key;
}

std::string_view bytes_of(const Key& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

std::optional<Key> key_from_bytes(std::string_view bytes) {
  Key key;
  if (bytes.size() != key.size()) return std::nullopt;
  std::ranges::copy(bytes, key.begin());
  return key;
}

std::string make_challenge(const Key& server_nonce) {
  return std::string(kGreeting).append(bytes_of(server_nonce));
}

std::optional<Key> read_challenge(std::string_view challenge) {
  if (!challenge.starts_with(kGreeting)) return std::nullopt;
  return key_from_bytes(challenge.substr(kGreeting.size()));
}

std::string make_answer(const Key& job_key, const Nonces& nonces) {
  return std::string(bytes_of(nonces.client)).append(bytes_of(hash_of(job_key, kClientProof, nonces)));
}

std::optional<Key> check_answer(const Key& job_key, const Key& server_nonce, std::string_view answer) {
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const auto nonce = key_from_bytes(answer.substr(0, sizeof(Key)));
  const auto proof = key_from_bytes(answer.substr(sizeof(Key)));
  if (!nonce || !proof || !is_equal(*proof, hash_of(job_key, kClientProof, {server_nonce, *nonce})))
    return std::nullopt;
  return nonce;
}

std::string make_server_proof(const Key& job_key, const Nonces& nonces) {
  return std::string(bytes_of(hash_of(job_key, kServerProof, nonces)));
}

bool check_server_proof(const Key& job_key, const Nonces& nonces, std::string_view proof) {
  const auto given = key_from_bytes(proof);
  return given && is_equal(*given, hash_of(job_key, kServerProof, nonces));
}

SessionKeys session_keys(const Key& job_key, const Nonces& nonces) {
  return {.to_server = hash_of(job_key, "messages to the server", nonces),
          .to_client = hash_of(job_key, "messages to the client", nonces)};
}

std::optional<Key> take_secret_of_environment() {
  static std::mutex mutex;
  static std::optional<Key> taken;
  const std::lock_guard lock(mutex);
  char* const text = std::getenv(kSecretVariable);
  if (text == nullptr || *text == '\0') return taken;
  const std::size_t size = std::strlen(text);
  taken = key_from_hex({text, size});
  wipe(text, size);
  unsetenv(kSecretVariable);
  if (!taken) throw UsageError(fmt::format("{} in the environment is not 64 hexadecimal digits", kSecretVariable));
  return taken;
}

fs::path secret_file(const Environment& environment) {
  if (const auto named = environment.find(kSecretFileVariable)) return *named;
  const auto folder = config_folder(environment);
  if (!folder) {
    throw UsageError(fmt::format(
        "HOME is not set, so there is no place for the secret that the ranks share: name a file by {}, or give all "
        "ranks the same {} (64 hexadecimal digits)",
        kSecretFileVariable, kSecretVariable));
  }
  return *folder / "secret";
}

Key secret_of_file(const Environment& environment) {
  const fs::path path = secret_file(environment);
  if (const auto secret = read_secret(path)) return *secret;
  make_secret(path);
  const auto secret = read_secret(path);
  if (!secret) throw file_mistake(path, "it was removed just after it was made");
  return *secret;
}

Key job_key(const Key& secret, const std::string& job_id) {
  return keyed_hash(secret, {"tessera job", job_id});
}

}  // namespace tessera
