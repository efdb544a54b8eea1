#include "weights/torch_file.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/text.h"
#include "weights/pickle_machine.h"

namespace tessera {

using internal::Kind;
using internal::Value;

namespace {

// The largest index into the storage that the tensor uses (its offset if it has no element); nothing if a number is
// negative or overflows.
std::optional<std::int64_t> last_element(const PickledTensor& tensor) {
  std::int64_t last = tensor.offset;
  if (last < 0) return std::nullopt;
  const bool empty = checked_numel(tensor.shape) == 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (tensor.strides[i] < 0) return std::nullopt;
    if (empty) continue;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  return last;
}

// Throws UsageError naming `origin` and the tensor unless every element lies in its storage.
WeightEntry place_tensor(const PickledTensor& tensor, const Storages& storages, const std::string& origin) {
  const auto fail = [&](const std::string& what) {
    refuse_file(origin, fmt::format("tensor '{}': {}", printable(tensor.name), what));
  };
  const std::string key = printable(tensor.storage_key);
  const auto found = storages.find(tensor.storage_key);
  if (found == storages.end()) fail(fmt::format("its storage {} is missing", key));
  const StorageBytes& storage = found->second;
  const std::int64_t element = bytes_of(tensor.type);
  if (tensor.storage_numel < 0 || static_cast<std::uint64_t>(tensor.storage_numel) > storage.num_bytes / element) {
    fail(fmt::format("its storage claims {} elements of {} bytes, but storage {} has {} bytes", tensor.storage_numel,
                     element, key, storage.num_bytes));
  }
  const auto numel = checked_numel(tensor.shape);
  if (!numel) fail(fmt::format("a shape of {} is negative or overflows", shape_text(tensor.shape)));
  if (tensor.strides.size() != tensor.shape.size()) fail("its numbers of strides and sizes differ");
  const auto last = last_element(tensor);
  if (!last || *last >= tensor.storage_numel + (*numel == 0 ? 1 : 0)) {
    fail(fmt::format("shape {}, strides {} and offset {} reach outside its storage of {} elements",
                     shape_text(tensor.shape), shape_text(tensor.strides), tensor.offset, tensor.storage_numel));
  }
  if (*numel > tensor.storage_numel) {
    fail(fmt::format("a shape of {} repeats the elements of a smaller storage ({}); save it with .contiguous()",
                     shape_text(tensor.shape), tensor.storage_numel));
  }
  const std::int64_t offset_bytes = static_cast<std::int64_t>(storage.offset_bytes) + tensor.offset * element;
  return {tensor.name, tensor.type, tensor.shape, tensor.strides, *numel, offset_bytes, 0};
}

// torch names the archive's top folder after the file.
const ZipRecord& find_pickle(const std::vector<ZipRecord>& records, const std::string& origin) {
  const ZipRecord* pickle = nullptr;
  for (const ZipRecord& record : records) {
    const std::size_t slash = record.name.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view rest = std::string_view(record.name).substr(slash + 1);
    if (rest == "constants.pkl" || rest.starts_with("code/")) {
      refuse_file(origin, "a TorchScript archive, which is a program; only state dicts are supported");
    }
    if (rest != "data.pkl") continue;
    if (pickle != nullptr) refuse_file(origin, "two records named data.pkl");
    pickle = &record;
  }
  if (pickle == nullptr) refuse_file(origin, "no record data.pkl: not a torch.save file");
  return *pickle;
}

// The number 0x1950a86a20f9469cfc6c, pickled.
constexpr std::string_view kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr std::int64_t kVersion = 1001;  // the only version ever used

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

Storages find_storages(std::string_view file, std::size_t at, const Value& keys, const ElementBytes& sizes,
                       const std::string& origin) {
  if (keys.kind != Kind::kList) refuse_file(origin, "the list of its storages is missing");
  Storages storages;
  for (const Value* key : keys.items) {
    const auto size = key->kind == Kind::kText ? sizes.find(key->text) : sizes.end();
    if (size == sizes.end()) refuse_file(origin, "a storage that belongs to no tensor");
    const std::string name = printable(key->text);
    if (file.size() - at < 8) refuse_file(origin, fmt::format("truncated before storage {}", name));
    const std::uint64_t numel = little_endian(file.substr(at, 8));
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

// The format from before torch 1.6, which many older published weights still use: five consecutive pickles (a magic
// number, a version, a description of the machine, the state dict, the keys of the storages), then the storages in the
// order of those keys, each as its number of elements in 8 bytes and its data.
std::vector<WeightEntry> parse_legacy_torch_file(std::string_view file, const std::string& origin) {
  internal::PickleMachine machine(file.substr(kMagic.size(), kMaxPickleBytes), origin);
  const Value& version = machine.run();
  if (version.kind != Kind::kInt || version.number != kVersion) {
    refuse_file(origin, fmt::format("not version {} of the format from before torch 1.6", kVersion));
  }
  check_byte_order(machine.run(), origin);
  const std::vector<PickledTensor> tensors = internal::tensors_of(machine.run(), origin);
  const Value& keys = machine.run();
  const Storages storages =
      find_storages(file, kMagic.size() + machine.num_read_bytes(), keys, element_bytes(tensors, origin), origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : tensors) entries.push_back(place_tensor(tensor, storages, origin));
  return entries;
}

}  // namespace

TorchArchive::TorchArchive(std::string_view file, const std::string& origin)
    : origin_(origin), records_(parse_zip_directory(file, origin)) {
  const auto text_of = [&](const ZipRecord& record) { return file.substr(record.offset_bytes, record.num_bytes); };
  const ZipRecord& pickle = find_pickle(records_, origin);
  const std::string folder = pickle.name.substr(0, pickle.name.find('/') + 1);
  for (const ZipRecord& record : records_) {
    if (record.is_compressed) {
      refuse_file(origin,
                  fmt::format("record '{}' is compressed; torch.save does not compress", printable(record.name)));
    }
    if (record.name == folder + "byteorder" && text_of(record) != "little") {
      refuse_file(origin, fmt::format("byte order '{}'; only little is supported", printable(text_of(record))));
    }
    if (record.name.starts_with(folder + "data/")) {
      storages_[std::string_view(record.name).substr(folder.size() + 5)] = {record.offset_bytes, record.num_bytes};
    }
  }
  pickle_ = text_of(pickle);
  if (pickle_.size() > kMaxPickleBytes) {
    refuse_file(origin, fmt::format("data.pkl takes {} bytes; the limit is {}", pickle_.size(), kMaxPickleBytes));
  }
  check_record(pickle, file, origin);
}

WeightEntry TorchArchive::place(const PickledTensor& tensor) const {
  return place_tensor(tensor, storages_, origin_);
}

std::vector<WeightEntry> parse_torch_file(std::string_view file, const std::string& origin) {
  if (file.starts_with(kMagic)) return parse_legacy_torch_file(file, origin);
  if (file.starts_with("version https://git-lfs")) {
    refuse_file(origin, "this is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
  }
  if (!file.starts_with("PK")) {
    refuse_file(origin, "not a torch.save file: it is neither a zip archive nor the format from before torch 1.6");
  }
  const TorchArchive archive(file, origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : parse_pickled_state_dict(archive.pickle(), origin)) {
    entries.push_back(archive.place(tensor));
  }
  return entries;
}

}  // namespace tessera
