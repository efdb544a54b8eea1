#include "weights/weights.h"

#include <ATen/Functions.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "weights/checkpoint_index.h"
#include "weights/checkpoint_reader.h"
#include "weights/foreign/foreign_checkpoint.h"
#include "weights/safetensors.h"
#include "weights/torch_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// By its first bytes, whatever its name: users rename files. '{' is tested first: the length before it can be any
// number, so one safetensors file in thousands begins with "PK".
WeightFormat format_of(const MappedFile& file) {
  const std::string_view bytes = file.bytes();
  if (bytes.size() > 8 && bytes[8] == '{') return WeightFormat::kSafetensors;
  const std::string extension = file.path().extension();
  if (bytes.starts_with("PK") || bytes.starts_with("\x80\x02")) return WeightFormat::kTorch;
  return extension == ".bin" || extension == ".pth" || extension == ".pt" ? WeightFormat::kTorch
                                                                          : WeightFormat::kSafetensors;
}

// Tensor name -> file name, as in the index.
std::vector<std::pair<std::string, std::string>> read_weight_map(const fs::path& index) {
  const Json json = read_json_file(index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) {
    throw UsageError(
        fmt::format("{}: expected an object \"weight_map\" of tensor names and file names", index.string()));
  }
  std::vector<std::pair<std::string, std::string>> places;
  for (const auto& [name, file] : map->items()) {
    // A shard lies beside its index: nothing else is opened, whatever the index says.
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>())) {
      throw UsageError(fmt::format("{}: tensor '{}': expected the name of a file in the same folder, found {}",
                                   index.string(), printable(name), printable(file.dump())));
    }
    places.emplace_back(name, file.get<std::string>());
  }
  return places;
}

// The file itself, or the one in a folder that transformers would use, or the folder of another program's checkpoint.
fs::path weights_in(const fs::path& file_or_folder) {
  std::error_code ignored;
  if (!fs::is_directory(file_or_folder, ignored)) return file_or_folder;
  constexpr const char* kCandidates[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                         "pytorch_model.bin.index.json", kIndexFile};
  for (const char* candidate : kCandidates) {
    if (fs::exists(file_or_folder / candidate, ignored)) return file_or_folder / candidate;
  }
  if (has_foreign_weights(file_or_folder)) return file_or_folder;
  throw UsageError(fmt::format("{} holds no weights: expected {}", file_or_folder.string(),
                               join({std::begin(kCandidates), std::end(kCandidates)}, ", ")));
}

// In the order of WeightType.
constexpr at::ScalarType kScalarTypes[] = {
    at::kBool,   at::kByte,          at::kChar,        at::kShort, at::kUInt16,   at::kInt,   at::kUInt32, at::kLong,
    at::kUInt64, at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kHalf,  at::kBFloat16, at::kFloat, at::kDouble};
static_assert(std::size(kScalarTypes) == static_cast<std::size_t>(WeightType::kF64) + 1);

}  // namespace

Weights Weights::open(const fs::path& file_or_folder) {
  const fs::path path = weights_in(file_or_folder);
  Weights weights;
  if (path.filename() == kIndexFile) {
    weights.add_checkpoint(CheckpointReader(path.parent_path()));
  } else if (has_foreign_weights(path)) {
    weights.add_checkpoint(CheckpointReader(path, open_foreign_checkpoint(path).index));
  } else if (path.string().ends_with(".index.json")) {
    weights.add_shards(path);
  } else {
    weights.add_file(path);
    weights.index_names();
  }
  return weights;
}

void Weights::add_file(const fs::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  const WeightFormat format = format_of(*file);
  std::vector<WeightEntry> entries;
  if (format == WeightFormat::kSafetensors) {
    SafetensorsHeader header = parse_safetensors(file->bytes(), path.string());
    entries = std::move(header.entries);
    metadata_.merge(header.metadata);
  } else {
    entries = parse_torch_file(file->bytes(), path.string());
  }
  if (files_.empty()) format_ = format;
  for (WeightEntry& entry : entries) {
    entry.file = files_.size();
    entries_.push_back(std::move(entry));
  }
  files_.push_back(std::move(file));
}

void Weights::add_shards(const fs::path& index) {
  const auto places = read_weight_map(index);
  std::unordered_map<std::string_view, std::string_view> file_of;
  std::set<std::string> names;  // sorted, which is the order of the shards
  for (const auto& [tensor, file] : places) {
    file_of.emplace(tensor, file);
    names.insert(file);
  }
  const auto disagree = [&](std::string_view tensor, const std::string& what) {
    throw UsageError(fmt::format("{}: tensor '{}': {}", index.string(), printable(tensor), what));
  };
  for (const std::string& name : names) {
    const fs::path path = index.parent_path() / name;
    std::error_code ignored;
    if (!fs::exists(path, ignored))
      throw UsageError(fmt::format("{} lists {}, which is missing", index.string(), printable(path.string())));
    const std::size_t first = entries_.size();
    add_file(path);
    for (std::size_t i = first; i < entries_.size(); ++i) {
      const auto place = file_of.find(entries_[i].name);
      if (place == file_of.end())
        disagree(entries_[i].name, fmt::format("{} holds it, but the index does not list it", printable(name)));
      if (place->second != name) {
        disagree(entries_[i].name,
                 fmt::format("{} holds it, but the index says {}", printable(name), printable(place->second)));
      }
    }
  }
  index_names();
  for (const auto& [tensor, file] : places) {
    if (find(tensor) == nullptr)
      disagree(tensor, fmt::format("the index says {}, which does not hold it", printable(file)));
  }
}

void Weights::add_checkpoint(CheckpointReader reader) {
  constexpr std::int64_t kAlignment = 64;
  const std::string prefix = kModelPrefix;
  std::int64_t num_bytes = 0;
  for (const auto& [name, tensor] : reader.index().tensors) {
    if (!name.starts_with(prefix)) continue;
    WeightEntry& entry = entries_.emplace_back();
    entry.name = name.substr(prefix.size());
    entry.type = tensor.type;
    entry.shape = tensor.shape;
    entry.strides = row_major_strides(tensor.shape);
    entry.numel = checked_numel(tensor.shape).value();
    entry.offset_bytes = num_bytes;
    num_bytes += (entry.num_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  auto memory = std::make_shared<MappedFile>(reader.folder() / kIndexFile, static_cast<std::size_t>(num_bytes));
  std::vector<TensorRange> ranges;
  for (const WeightEntry& entry : entries_) {
    const StoredTensor& tensor = reader.index().tensors.at(prefix + entry.name);
    ranges.push_back({&tensor, 0, entry.numel, memory->memory() + entry.offset_bytes});
  }
  reader.read(ranges);
  for (const auto& [other, name] : reader.index().other_names) {
    metadata_[other.substr(prefix.size())] = name.substr(prefix.size());
  }
  files_.push_back(std::move(memory));
  index_names();
}

void Weights::index_names() {
  by_name_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
}

const WeightEntry* Weights::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::pair<std::string, std::string>> Weights::ties() const {
  std::vector<std::pair<std::string, std::string>> ties;
  for (const auto& [name, kept] : metadata_) {
    if (find(name) == nullptr && find(kept) != nullptr) ties.emplace_back(name, kept);
  }
  std::map<std::tuple<std::size_t, std::int64_t, WeightType, std::vector<std::int64_t>, std::vector<std::int64_t>>,
           const WeightEntry*>
      firsts;
  for (const WeightEntry& entry : entries_) {
    if (entry.numel == 0) continue;
    const auto [first, is_new] =
        firsts.try_emplace({entry.file, entry.offset_bytes, entry.type, entry.shape, entry.strides}, &entry);
    if (!is_new) ties.emplace_back(entry.name, first->second->name);
  }
  return ties;
}

at::ScalarType scalar_type(WeightType type) {
  return kScalarTypes[static_cast<std::size_t>(type)];
}

WeightType weight_type(at::ScalarType type) {
  const auto* found = std::ranges::find(kScalarTypes, type);
  if (found != std::end(kScalarTypes)) return static_cast<WeightType>(found - std::begin(kScalarTypes));
  throw Error(fmt::format("tensors of type {} cannot be stored in a weight file", c10::toString(type)));
}

at::Tensor tensor_of(const Weights& weights, const WeightEntry& entry) {
  const auto options = at::TensorOptions().dtype(scalar_type(entry.type));
  if (entry.numel == 0) return at::empty_strided(entry.shape, entry.strides, options);
  const auto file = weights.files()[entry.file];
  // from_blob requires a writable pointer; the map's pages allow it.
  char* data = const_cast<char*>(file->bytes().data()) + entry.offset_bytes;
  at::Tensor view = at::from_blob(
      data, entry.shape, entry.strides, [file](void*) {}, options);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % bytes_of(entry.type) == 0;
  return aligned ? view : view.clone();
}

at::Tensor tensor_of(const Weights& weights, std::string_view name) {
  if (const WeightEntry* entry = weights.find(name)) return tensor_of(weights, *entry);
  std::vector<std::string> names;
  for (const WeightEntry& entry : weights.entries()) names.push_back(entry.name);
  throw UsageError(fmt::format("{} has no tensor '{}'{}", weights.files().front()->path().string(), name,
                               did_you_mean(name, names)));
}

}  // namespace tessera
