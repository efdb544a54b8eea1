#include "checkpoint/torch_archive.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "checkpoint/pickle.h"
#include "checkpoint/zip_directory.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::uint64_t kMaxPickleBytes = 64 << 20;  // a state dict of 100,000 tensors takes 20 MB

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw UsageError(fmt::format("{}: {}", origin, what));
}

void refuse_other_formats(std::string_view file, const std::string& origin) {
  if (file.starts_with("PK")) return;
  if (file.starts_with("version https://git-lfs")) {
    refuse(origin, "this is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
  }
  // The first thing in a file of torch before 1.6 is the pickled number 0x1950a86a20f9469cfc6c.
  constexpr std::string_view kOldMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  if (file.starts_with(kOldMagic)) {
    refuse(origin,
           "written in the format from before torch 1.6, which is not read; "
           "rewrite it in Python: torch.save(torch.load(FILE, weights_only=True), NEW_FILE)");
  }
  refuse(origin, "no file of torch.save: it does not begin as a zip archive does");
}

class Archive {
 public:
  Archive(std::string_view file, const std::string& origin) : file_(file), origin_(origin) {
    std::string_view pickle_name;
    const std::vector<ZipRecord> records = parse_zip_directory(file, origin);
    for (const ZipRecord& record : records) {
      const std::size_t slash = record.name.find('/');
      if (slash == std::string::npos) continue;
      const std::string_view rest = std::string_view(record.name).substr(slash + 1);
      if (rest == "constants.pkl" || rest.starts_with("code/")) {
        refuse(origin, "a TorchScript archive, that is a program; only state dicts are read");
      }
      if (rest != "data.pkl") continue;
      if (!pickle_name.empty()) refuse(origin, "two records named data.pkl");
      pickle_name = record.name;
      pickle_ = text_of(record);
    }
    if (pickle_name.empty()) refuse(origin, "no record data.pkl; no file of torch.save");
    const std::string folder(pickle_name.substr(0, pickle_name.find('/') + 1));
    for (const ZipRecord& record : records) {
      if (record.is_compressed) {
        refuse(origin, fmt::format("record '{}' is compressed; torch.save stores without", printable(record.name)));
      }
      if (record.name == folder + "byteorder" && text_of(record) != "little") {
        refuse(origin, fmt::format("byte order '{}'; only little is read", printable(text_of(record))));
      }
      if (record.name.starts_with(folder + "data/")) storages_.emplace(record.name.substr(folder.size() + 5), record);
    }
    if (pickle_.size() > kMaxPickleBytes) {
      refuse(origin, fmt::format("data.pkl takes {} bytes; at most {} are read", pickle_.size(), kMaxPickleBytes));
    }
  }

  std::string_view pickle() const { return pickle_; }

  WeightEntry place(const PickledTensor& tensor) const {
    const auto fail = [&](const std::string& what) {
      refuse(origin_, fmt::format("tensor '{}': {}", printable(tensor.name), what));
    };
    const auto found = storages_.find(tensor.storage_key);
    if (found == storages_.end())
      fail(fmt::format("its storage, record data/{}, is missing", printable(tensor.storage_key)));
    const ZipRecord& storage = found->second;
    const std::int64_t element = bytes_of(tensor.type);
    if (tensor.storage_numel < 0 || static_cast<std::uint64_t>(tensor.storage_numel) > storage.num_bytes / element) {
      fail(fmt::format("its storage claims {} elements of {} bytes, but record data/{} has {} bytes",
                       tensor.storage_numel, element, printable(tensor.storage_key), storage.num_bytes));
    }
    WeightEntry entry{tensor.name, tensor.type, tensor.shape, tensor.strides, 0, 0, 0};
    const auto numel = checked_numel(tensor.shape);
    if (!numel) fail(fmt::format("a shape of {} is negative or overflows", shape_text(tensor.shape)));
    if (tensor.strides.size() != tensor.shape.size()) fail("it has not as many strides as sizes");
    const auto last = last_element(tensor);
    if (!last || *last >= tensor.storage_numel + (*numel == 0 ? 1 : 0)) {
      fail(fmt::format("shape {}, strides {} and offset {} reach outside its storage of {} elements",
                       shape_text(tensor.shape), shape_text(tensor.strides), tensor.offset, tensor.storage_numel));
    }
    if (*numel > tensor.storage_numel) {
      fail(fmt::format("a shape of {} repeats the elements of a smaller storage ({}); save it with .contiguous()",
                       shape_text(tensor.shape), tensor.storage_numel));
    }
    entry.numel = *numel;
    entry.offset_bytes = static_cast<std::int64_t>(storage.offset_bytes) + tensor.offset * element;
    return entry;
  }

 private:
  std::string_view text_of(const ZipRecord& record) const {
    return file_.substr(record.offset_bytes, record.num_bytes);
  }

  // The largest index into the storage that the tensor uses (its offset where it has no element); nothing where a
  // number is negative or overflows.
  static std::optional<std::int64_t> last_element(const PickledTensor& tensor) {
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

  std::string_view file_;
  const std::string& origin_;
  std::string_view pickle_;
  std::unordered_map<std::string, ZipRecord> storages_;
};

}  // namespace

std::vector<WeightEntry> parse_torch_archive(std::string_view file, const std::string& origin) {
  refuse_other_formats(file, origin);
  const Archive archive(file, origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : parse_pickled_state_dict(archive.pickle(), origin)) {
    entries.push_back(archive.place(tensor));
  }
  return entries;
}

}  // namespace tessera
