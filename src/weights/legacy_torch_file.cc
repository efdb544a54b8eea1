#include "weights/legacy_torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/text.h"
#include "weights/pickle_call.h"
#include "weights/pickle_machine.h"
#include "weights/place_tensor.h"

namespace tessera {

namespace {

using internal::Kind;
using internal::Value;

// The number 0x1950a86a20f9469cfc6c, pickled.
constexpr std::string_view kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr std::int64_t kVersion = 1001;  // the only version ever used

void check_version(const Value& version, const std::string& origin) {
  if (version.kind != Kind::kInt || version.number != kVersion) {
    refuse_file(origin, fmt::format("not version {} of the format from before torch 1.6", kVersion));
  }
}

void check_byte_order(const Value& system, const std::string& origin) {
  if (system.kind != Kind::kDict) refuse_file(origin, "the description of the machine that wrote it is missing");
  for (std::size_t i = 0; i < system.items.size(); i += 2) {
    const Value& value = *system.items[i + 1];
    if (!internal::is_text(*system.items[i], "little_endian")) continue;
    if (value.kind != Kind::kBool || value.number == 0)
      refuse_file(origin, "big-endian; only little-endian is supported");
  }
}

using ElementBytes = std::unordered_map<std::string_view, std::int64_t>;

// The element size of each storage, which only the tensors give.
ElementBytes element_bytes(const std::vector<PickledTensor>& tensors, const std::string& origin) {
  ElementBytes sizes;
  for (const PickledTensor& tensor : tensors) {
    const auto [known, is_new] = sizes.try_emplace(tensor.storage_key, bytes_of(tensor.type));
    if (!is_new && known->second != bytes_of(tensor.type)) {
      refuse_file(origin, fmt::format("tensor '{}': another tensor uses its storage {} with elements of {} bytes",
                                      printable(tensor.name), printable(tensor.storage_key), known->second));
    }
  }
  return sizes;
}

std::unordered_map<std::string_view, StorageBytes> find_storages(std::string_view file, std::size_t at,
                                                                 const Value& keys, const ElementBytes& sizes,
                                                                 const std::string& origin) {
  if (keys.kind != Kind::kList) refuse_file(origin, "the list of its storages is missing");
  std::unordered_map<std::string_view, StorageBytes> storages;
  for (const Value* key : keys.items) {
    const auto size = key->kind == Kind::kText ? sizes.find(key->text) : sizes.end();
    if (size == sizes.end()) refuse_file(origin, "a storage that belongs to no tensor");
    const std::string name = printable(key->text);
    if (file.size() - at < 8) refuse_file(origin, fmt::format("truncated before storage {}", name));
    std::uint64_t numel = 0;
    for (std::size_t i = 8; i-- > 0;) numel = numel << 8 | static_cast<unsigned char>(file[at + i]);
    at += 8;
    const auto element = static_cast<std::uint64_t>(size->second);
    if (numel > (file.size() - at) / element) {
      refuse_file(origin, fmt::format("truncated: storage {} has {} elements of {} bytes, but only {} bytes follow",
                                      name, numel, element, file.size() - at));
    }
    if (!storages.emplace(key->text, StorageBytes{at, numel * element}).second) {
      refuse_file(origin, fmt::format("storage {} is listed twice", name));
    }
    at += numel * element;
  }
  if (at != file.size())
    refuse_file(origin, fmt::format("{} bytes after its storages belong to none", file.size() - at));
  return storages;
}

}  // namespace

bool is_legacy_torch_file(std::string_view file) {
  return file.starts_with(kMagic);
}

std::vector<WeightEntry> parse_legacy_torch_file(std::string_view file, const std::string& origin) {
  internal::PickleMachine machine(file.substr(kMagic.size(), kMaxPickleBytes), origin);
  check_version(machine.run(), origin);
  check_byte_order(machine.run(), origin);
  const std::vector<PickledTensor> tensors = internal::tensors_of(machine.run(), origin);
  const Value& keys = machine.run();
  const auto storages =
      find_storages(file, kMagic.size() + machine.num_read_bytes(), keys, element_bytes(tensors, origin), origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : tensors) {
    const auto found = storages.find(tensor.storage_key);
    entries.push_back(place_tensor(tensor, found == storages.end() ? nullptr : &found->second, origin));
  }
  return entries;
}

}  // namespace tessera
