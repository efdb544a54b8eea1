#include "weights/torch_archive.h"

#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "weights/zip_directory.h"

namespace tessera {

namespace {

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

}  // namespace

TorchArchive::TorchArchive(std::string_view file, const std::string& origin) : origin_(origin) {
  const std::vector<ZipRecord> records = parse_zip_directory(file, origin);
  const auto text_of = [&](const ZipRecord& record) { return file.substr(record.offset_bytes, record.num_bytes); };
  const ZipRecord& pickle = find_pickle(records, origin);
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

WeightEntry TorchArchive::place(const PickledTensor& tensor) const {
  const auto found = storages_.find(tensor.storage_key);
  return place_tensor(tensor, found == storages_.end() ? nullptr : &found->second, origin_);
}

}  // namespace tessera
