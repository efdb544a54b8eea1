#include "weights/checkpoint_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "weights/block_checksums.h"
#include "weights/weight_entry.h"

namespace tessera {
namespace {

constexpr const char* kVersionKey = "tessera_checkpoint";
constexpr int kIndexVersion = 1;
constexpr const char* kOwnChecksum = "checksum";

Json files_json(const std::map<std::string, StoredFile>& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) json[name] = {{"bytes", file.bytes}, {"xxh3_128", file.checksums}};
  return json;
}

Json tensors_json(const std::map<std::string, StoredTensor>& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors) {
    Json parts = Json::array();
    for (const StoredPart& part : tensor.parts) {
      parts.push_back({{"file", part.file}, {"begin", part.begin}, {"end", part.end}, {"offset", part.offset}});
    }
    json[name] = {{"type", safetensors_name(tensor.type)}, {"shape", tensor.shape}, {"parts", std::move(parts)}};
  }
  return json;
}

// Reads values of the expected type, and says which one is missing or wrong.
class IndexReader {
 public:
  explicit IndexReader(std::string origin) : origin_(std::move(origin)) {}

  template <typename T>
  T at(const Json& object, const char* key) const {
    try {
      return object.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      fail(fmt::format("\"{}\" is missing or has the wrong type", key));
    }
  }

  const Json& object(const Json& in, const char* key) const {
    const auto found = in.find(key);
    if (found == in.end() || !found->is_object()) fail(fmt::format("\"{}\" is missing or no object", key));
    return *found;
  }

  void read_files(const Json& json, std::map<std::string, StoredFile>& files) const {
    for (const auto& [name, each] : object(json, "files").items()) {
      if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
        fail(fmt::format("'{}' is no name of a file in the checkpoint", printable(name)));
      }
      files[name] = {at<std::int64_t>(each, "bytes"), at<std::vector<std::string>>(each, "xxh3_128")};
    }
  }

  void read_tensors(const Json& json, std::map<std::string, StoredTensor>& tensors) const {
    for (const auto& [name, each] : object(json, "tensors").items()) {
      const std::optional<WeightType> type = type_of_safetensors_name(at<std::string>(each, "type"));
      if (!type) fail(fmt::format("tensor '{}' has an unknown type", printable(name)));
      StoredTensor tensor{*type, at<std::vector<std::int64_t>>(each, "shape"), {}};
      for (const Json& part : at<Json>(each, "parts")) {
        tensor.parts.push_back({at<std::string>(part, "file"), at<std::int64_t>(part, "begin"),
                                at<std::int64_t>(part, "end"), at<std::int64_t>(part, "offset")});
      }
      auto [known, is_new] = tensors.try_emplace(name, tensor);
      if (is_new) continue;
      if (known->second.type != tensor.type || known->second.shape != tensor.shape) {
        fail(fmt::format("two ranks disagree about tensor '{}'", printable(name)));
      }
      known->second.parts.insert(known->second.parts.end(), tensor.parts.begin(), tensor.parts.end());
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw UsageError(fmt::format("{}: {}", origin_, what)); }

 private:
  std::string origin_;
};

void check_files(const CheckpointIndex& index, const IndexReader& reader) {
  for (const auto& [name, file] : index.files) {
    const std::int64_t num_blocks = file.bytes / kChecksumBlock + (file.bytes % kChecksumBlock > 0 ? 1 : 0);
    if (file.bytes < 0 || num_blocks != std::ssize(file.checksums)) {
      reader.fail(fmt::format("{} has {} bytes and {} checksums", printable(name), file.bytes, file.checksums.size()));
    }
  }
}

void check_tensors(CheckpointIndex& index, const IndexReader& reader) {
  for (auto& [name, tensor] : index.tensors) {
    const auto fail = [&, &tensor_name = name](const std::string& what) {
      reader.fail(fmt::format("tensor '{}' {}", printable(tensor_name), what));
    };
    const std::optional<std::int64_t> numel = checked_numel(tensor.shape);
    if (!numel) fail("has no possible shape");
    std::sort(tensor.parts.begin(), tensor.parts.end(),
              [](const StoredPart& a, const StoredPart& b) { return a.begin < b.begin; });
    std::int64_t next = 0;
    for (const StoredPart& part : tensor.parts) {
      if (part.begin != next || part.end <= part.begin || part.end > *numel) fail("has parts with a gap or an overlap");
      const auto file = index.files.find(part.file);
      if (file == index.files.end()) fail(fmt::format("lies in {}, which is not listed", printable(part.file)));
      const std::int64_t bytes = file->second.bytes, element = bytes_of(tensor.type);
      if (part.offset < 0 || part.offset > bytes || part.end - part.begin > (bytes - part.offset) / element) {
        fail(fmt::format("ends behind the end of {}", printable(part.file)));
      }
      next = part.end;
    }
    if (next != *numel) fail("is not complete");
  }
}

// Of what the index says: that it can be true.
void check(CheckpointIndex& index, const IndexReader& reader) {
  check_files(index, reader);
  check_tensors(index, reader);
}

std::string checksum_without(Json index) {
  index.erase(kOwnChecksum);
  return checksum_of(index.dump());
}

}  // namespace

std::string contribution_text(const CheckpointIndex& own) {
  return Json{{"files", files_json(own.files)}, {"tensors", tensors_json(own.tensors)}}.dump();
}

void add_contribution(CheckpointIndex& index, const std::string& text) {
  const IndexReader reader("a rank's part of the checkpoint");
  const Json json = parse_json(text, "a rank's part of the checkpoint");
  reader.read_files(json, index.files);
  reader.read_tensors(json, index.tensors);
}

std::string index_text(const CheckpointIndex& index) {
  CheckpointIndex checked = index;
  check(checked, IndexReader(kIndexFile));
  Json json = {{kVersionKey, kIndexVersion},
               {"step", index.step},
               {"num_ranks", index.num_ranks},
               {"block_bytes", kChecksumBlock},
               {"numbers", index.numbers},
               {"files", files_json(index.files)},
               {"tensors", tensors_json(checked.tensors)},
               {"other_names", index.other_names}};
  json[kOwnChecksum] = checksum_without(json);
  return json.dump(1) + "\n";
}

CheckpointIndex parse_index(const std::string& text, const std::string& origin) {
  const IndexReader reader(origin);
  const Json json = parse_json(text, origin);
  if (!json.is_object() || !json.contains(kVersionKey)) reader.fail("not the index of a checkpoint");
  const auto version = reader.at<std::int64_t>(json, kVersionKey);
  if (version != kIndexVersion) {
    reader.fail(fmt::format("a checkpoint of version {}; this program reads version {}", version, kIndexVersion));
  }
  if (reader.at<std::string>(json, kOwnChecksum) != checksum_without(json)) {
    reader.fail("damaged: its checksum does not fit its text");
  }
  if (reader.at<std::int64_t>(json, "block_bytes") != kChecksumBlock) reader.fail("has checksums of other blocks");
  CheckpointIndex index;
  index.step = reader.at<std::int64_t>(json, "step");
  index.num_ranks = reader.at<int>(json, "num_ranks");
  index.other_names = reader.at<std::map<std::string, std::string>>(json, "other_names");
  index.numbers = reader.at<std::map<std::string, double>>(json, "numbers");
  reader.read_files(json, index.files);
  reader.read_tensors(json, index.tensors);
  for (const auto& [other, name] : index.other_names) {
    if (!other.starts_with(kModelPrefix) || !name.starts_with(kModelPrefix)) {
      reader.fail(fmt::format("'{}' is no other name of a parameter", printable(other)));
    }
  }
  check(index, reader);
  return index;
}

void check_index(CheckpointIndex& index, const std::string& origin) {
  check_tensors(index, IndexReader(origin));
}

}  // namespace tessera
