#include "weights/torch_file.h"

#include <fmt/format.h>

#include <unordered_map>

#include "core/error.h"
#include "core/text.h"
#include "weights/legacy_torch_file.h"
#include "weights/pickle.h"
#include "weights/place_tensor.h"
#include "weights/zip_directory.h"

namespace tessera {

namespace {

void refuse_other_formats(std::string_view file, const std::string& origin) {
  if (file.starts_with("PK")) return;
  if (file.starts_with("version https://git-lfs")) {
    refuse_file(origin, "this is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
  }
  refuse_file(origin, "not a torch.save file: it is neither a zip archive nor the format from before torch 1.6");
}

class Archive {
 public:
  Archive(std::string_view file, const std::string& origin) : file_(file), origin_(origin) {
    const std::vector<ZipRecord> records = parse_zip_directory(file, origin);
    const ZipRecord& pickle = find_pickle(records);
    const std::string folder = pickle.name.substr(0, pickle.name.find('/') + 1);
    for (const ZipRecord& record : records) {
      if (record.is_compressed) {
        refuse_file(origin,
                    fmt::format("record '{}' is compressed; torch.save does not compress", printable(record.name)));
      }
      if (record.name == folder + "byteorder" && text_of(record) != "little") {
        refuse_file(origin, fmt::format("byte order '{}'; only little is supported", printable(text_of(record))));
      }
      if (record.name.starts_with(folder + "data/")) {
        storages_.emplace(record.name.substr(folder.size() + 5), StorageBytes{record.offset_bytes, record.num_bytes});
      }
    }
    pickle_ = text_of(pickle);
    if (pickle_.size() > kMaxPickleBytes) {
      refuse_file(origin, fmt::format("data.pkl takes {} bytes; the limit is {}", pickle_.size(), kMaxPickleBytes));
    }
  }

  std::string_view pickle() const { return pickle_; }

  WeightEntry place(const PickledTensor& tensor) const {
    const auto found = storages_.find(tensor.storage_key);
    return place_tensor(tensor, found == storages_.end() ? nullptr : &found->second, origin_);
  }

 private:
  // torch names the archive's top folder after the file.
  const ZipRecord& find_pickle(const std::vector<ZipRecord>& records) const {
    const ZipRecord* pickle = nullptr;
    for (const ZipRecord& record : records) {
      const std::size_t slash = record.name.find('/');
      if (slash == std::string::npos) continue;
      const std::string_view rest = std::string_view(record.name).substr(slash + 1);
      if (rest == "constants.pkl" || rest.starts_with("code/")) {
        refuse_file(origin_, "a TorchScript archive, which is a program; only state dicts are supported");
      }
      if (rest != "data.pkl") continue;
      if (pickle != nullptr) refuse_file(origin_, "two records named data.pkl");
      pickle = &record;
    }
    if (pickle == nullptr) refuse_file(origin_, "no record data.pkl: not a torch.save file");
    return *pickle;
  }

  std::string_view text_of(const ZipRecord& record) const {
    return file_.substr(record.offset_bytes, record.num_bytes);
  }

  std::string_view file_;
  const std::string& origin_;
  std::string_view pickle_;
  std::unordered_map<std::string, StorageBytes> storages_;
};

}  // namespace

std::vector<WeightEntry> parse_torch_file(std::string_view file, const std::string& origin) {
  if (is_legacy_torch_file(file)) return parse_legacy_torch_file(file, origin);
  refuse_other_formats(file, origin);
  const Archive archive(file, origin);
  std::vector<WeightEntry> entries;
  for (const PickledTensor& tensor : parse_pickled_state_dict(archive.pickle(), origin)) {
    entries.push_back(archive.place(tensor));
  }
  return entries;
}

}  // namespace tessera
