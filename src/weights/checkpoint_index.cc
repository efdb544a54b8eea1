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

// A value of the expected type, or which one is missing or wrong.
template <typename T>
T at(const Json& object, const char* key, const std::string& origin) {
  try {
    return object.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    refuse_file(origin, fmt::format("\"{}\" is missing or has the wrong type", key));
  }
}

const Json& object_at(const Json& in, const char* key, const std::string& origin) {
  const auto found = in.find(key);
  if (found == in.end() || !found->is_object()) {
    refuse_file(origin, fmt::format("\"{}\" is missing or no object", key));
  }
  return *found;
}

// Adds the files and tensors that `json` lists.
void read_contents(const Json& json, CheckpointIndex& index, const std::string& origin) {
  for (const auto& [name, each] : object_at(json, "files", origin).items()) {
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.')) {
      refuse_file(origin, fmt::format("'{}' is no name of a file in the checkpoint", printable(name)));
    }
    index.files[name] = {at<std::int64_t>(each, "bytes", origin),
                         at<std::vector<std::string>>(each, "xxh3_128", origin)};
  }
  for (const auto& [name, each] : object_at(json, "tensors", origin).items()) {
    const std::optional<WeightType> type = type_of_safetensors_name(at<std::string>(each, "type", origin));
    if (!type) refuse_file(origin, fmt::format("tensor '{}' has an unknown type", printable(name)));
    const auto shape = at<std::vector<std::int64_t>>(each, "shape", origin);
    StoredTensor& tensor = index.tensors.try_emplace(name, StoredTensor{*type, shape, {}}).first->second;
    if (tensor.type != *type || tensor.shape != shape) {
      refuse_file(origin, fmt::format("two ranks disagree about tensor '{}'", printable(name)));
    }
    for (const Json& part : at<Json>(each, "parts", origin)) {
      tensor.parts.push_back({at<std::string>(part, "file", origin), at<std::int64_t>(part, "begin", origin),
                              at<std::int64_t>(part, "end", origin), at<std::int64_t>(part, "offset", origin)});
    }
  }
}

void check_checksums(const CheckpointIndex& index, const std::string& origin) {
  for (const auto& [name, file] : index.files) {
    const std::int64_t num_blocks = file.bytes / kChecksumBlock + (file.bytes % kChecksumBlock > 0 ? 1 : 0);
    if (file.bytes < 0 || num_blocks != std::ssize(file.checksums)) {
      refuse_file(origin,
                  fmt::format("{} has {} bytes and {} checksums", printable(name), file.bytes, file.checksums.size()));
    }
  }
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
  const std::string origin = "a rank's part of the checkpoint";
  read_contents(parse_json(text, origin), index, origin);
}

std::string index_text(const CheckpointIndex& index) {
  CheckpointIndex checked = index;
  check_checksums(checked, kIndexFile);
  check_index(checked, kIndexFile);
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
  const Json json = parse_json(text, origin);
  if (!json.is_object() || !json.contains(kVersionKey)) refuse_file(origin, "not the index of a checkpoint");
  const auto version = at<std::int64_t>(json, kVersionKey, origin);
  if (version != kIndexVersion) {
    refuse_file(origin,
                fmt::format("a checkpoint of version {}; this program reads version {}", version, kIndexVersion));
  }
  if (at<std::string>(json, kOwnChecksum, origin) != checksum_without(json)) {
    refuse_file(origin, "damaged: its checksum does not fit its text");
  }
  if (at<std::int64_t>(json, "block_bytes", origin) != kChecksumBlock) {
    refuse_file(origin, "has checksums of other blocks");
  }
  CheckpointIndex index;
  index.step = at<std::int64_t>(json, "step", origin);
  index.num_ranks = at<int>(json, "num_ranks", origin);
  index.other_names = at<std::map<std::string, std::string>>(json, "other_names", origin);
  index.numbers = at<std::map<std::string, double>>(json, "numbers", origin);
  read_contents(json, index, origin);
  for (const auto& [other, name] : index.other_names) {
    if (!other.starts_with(kModelPrefix) || !name.starts_with(kModelPrefix)) {
      refuse_file(origin, fmt::format("'{}' is no other name of a parameter", printable(other)));
    }
  }
  check_checksums(index, origin);
  check_index(index, origin);
  return index;
}

void check_index(CheckpointIndex& index, const std::string& origin) {
  for (auto& [name, tensor] : index.tensors) {
    const auto fail = [&, &tensor_name = name](const std::string& what) {
      refuse_file(origin, fmt::format("tensor '{}' {}", printable(tensor_name), what));
    };
    const std::optional<std::int64_t> numel = checked_numel(tensor.shape);
    if (!numel) fail("has no possible shape");
    std::ranges::sort(tensor.parts, {}, &StoredPart::begin);
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

}  // namespace tessera
