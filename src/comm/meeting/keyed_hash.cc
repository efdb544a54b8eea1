#include "comm/meeting/keyed_hash.h"

#include <sodium.h>

#include <algorithm>

#include "core/error.h"

namespace tessera {
namespace {

// Must be called before anything else of the library; any number of times, from any thread.
void start_sodium() {
  if (sodium_init() < 0) throw Error("libsodium cannot be started: this system gives no random numbers");
}

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
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
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

}  // namespace tessera
