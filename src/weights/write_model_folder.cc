#include "weights/write_model_folder.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "weights/model_folder.h"
#include "weights/pickle.h"
#include "weights/safetensors.h"
#include "weights/weights.h"
#include "weights/zip.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// What is written: distinct data, and the other names of some of it.
struct Item {
  WeightEntry entry;  // its first name, the type and shape it will have
  at::Tensor tensor;
  std::vector<std::string> other_names;
};
using Items = std::vector<Item>;

WeightEntry entry_of(const NamedTensor& named, const WriteOptions& options) {
  WeightEntry entry;
  entry.name = named.name;
  entry.type = weight_type(named.tensor.scalar_type());
  if (options.dtype && is_floating(entry.type)) entry.type = *options.dtype;
  entry.shape = named.tensor.sizes().vec();
  entry.strides = row_major_strides(entry.shape);
  entry.numel = named.tensor.numel();
  return entry;
}

Items distinct(const std::vector<NamedTensor>& tensors, const WriteOptions& options) {
  Items items;
  std::map<std::tuple<const void*, at::ScalarType, std::vector<std::int64_t>, std::vector<std::int64_t>>, std::size_t>
      known;
  std::unordered_set<std::string> names;
  for (const NamedTensor& named : tensors) {
    if (!names.insert(named.name).second)
      throw Error(fmt::format("tensor '{}' is listed twice for writing", printable(named.name)));
    const at::Tensor& tensor = named.tensor;
    if (tensor.numel() > 0) {
      const auto [place, is_new] = known.try_emplace(
          {tensor.const_data_ptr(), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()}, items.size());
      if (!is_new) {
        items[place->second].other_names.push_back(named.name);
        continue;
      }
    }
    items.push_back({entry_of(named, options), tensor, {}});
  }
  return items;
}

// fp16 ends at 65504, and bf16 weights may exceed it: infinities that arise from conversion are reported.
void warn_of_overflow(const Item& item, const at::Tensor& converted) {
  const at::Tensor source = item.tensor.detach();
  if (item.entry.type != WeightType::kF16 || source.scalar_type() == at::kHalf) return;
  const auto num_infinite = at::isinf(converted).sum().item<std::int64_t>();
  if (num_infinite == 0) return;
  const auto num_new = num_infinite - at::isinf(source.to(at::kFloat)).sum().item<std::int64_t>();
  if (num_new > 0) {
    log_warn("tensor '{}': {} of {} values are beyond float16's range and become infinite", printable(item.entry.name),
             num_new, item.entry.numel);
  }
}

// The bytes as the file holds them. `holder` keeps them alive.
std::string_view bytes_of(const Item& item, at::Tensor& holder) {
  holder = item.tensor.detach().to(at::kCPU, scalar_type(item.entry.type)).contiguous();
  warn_of_overflow(item, holder);
  return {static_cast<const char*>(holder.const_data_ptr()), static_cast<std::size_t>(item.entry.num_bytes())};
}

void write_safetensors(const fs::path& path, Items items) {
  // Larger elements first, so that every tensor is aligned to its element size.
  std::ranges::stable_sort(items, std::greater(), [](const Item& item) { return bytes_of(item.entry.type); });
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  std::vector<WeightEntry> entries;
  for (const Item& item : items) {
    if (item.entry.name == "__metadata__") {
      throw UsageError("a tensor named '__metadata__' cannot be written to a safetensors file; write .bin");
    }
    entries.push_back(item.entry);
    for (const std::string& name : item.other_names) metadata.emplace(name, item.entry.name);
  }
  OutputFile file(path);
  file.write(compose_safetensors_header(entries, metadata));
  for (const Item& item : items) {
    at::Tensor holder;
    file.write(bytes_of(item, holder));
  }
  file.become_target();
}

void write_torch_file(const fs::path& path, const Items& items) {
  std::vector<PickledTensor> tensors;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const WeightEntry& entry = items[i].entry;
    PickledTensor tensor{entry.name, entry.type, std::to_string(i), entry.numel, 0, entry.shape, entry.strides};
    tensors.push_back(tensor);
    for (const std::string& name : items[i].other_names) {
      tensor.name = name;
      tensors.push_back(tensor);
    }
  }
  // torch names the folder in the archive after the file; readers accept any name.
  const std::string root = "archive/";
  OutputFile file(path);
  ZipWriter zip(file);
  zip.add(root + "data.pkl", compose_pickled_state_dict(tensors));
  zip.add(root + "byteorder", "little");
  for (std::size_t i = 0; i < items.size(); ++i) {
    at::Tensor holder;
    zip.add(root + "data/" + std::to_string(i), bytes_of(items[i], holder));
  }
  zip.add(root + "version", "3\n");
  zip.finish();
  file.become_target();
}

void write_one(const fs::path& path, const Items& items, WeightFormat format) {
  format == WeightFormat::kSafetensors ? write_safetensors(path, items) : write_torch_file(path, items);
}

// In order, each shard as full as possible; a tensor larger than a shard gets its own.
std::vector<Items> shards_of(const Items& items, std::int64_t max_shard_bytes) {
  std::vector<Items> shards(1);
  std::int64_t filled = 0;
  for (const Item& item : items) {
    if (!shards.back().empty() && item.entry.num_bytes() > max_shard_bytes - filled) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(item);
    filled += item.entry.num_bytes();
  }
  return shards;
}

// One file, or shards and their index. Returns the names of the files.
std::vector<std::string> write_weights(const fs::path& folder, const std::vector<NamedTensor>& tensors,
                                       const WriteOptions& options) {
  const bool safetensors = options.format == WeightFormat::kSafetensors;
  const std::string stem = safetensors ? "model" : "pytorch_model", extension = safetensors ? ".safetensors" : ".bin";
  const std::vector<Items> shards = shards_of(distinct(tensors, options), options.max_shard_bytes);
  if (shards.size() == 1) {
    write_one(folder / (stem + extension), shards.front(), options.format);
    return {stem + extension};
  }
  std::vector<std::string> files;
  std::vector<std::pair<std::string, std::string>> places;  // an ordered object would search at every insertion
  std::int64_t total_bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    files.push_back(fmt::format("{}-{:05}-of-{:05}{}", stem, i + 1, shards.size(), extension));
    write_one(folder / files.back(), shards[i], options.format);
    for (const Item& item : shards[i]) {
      total_bytes += item.entry.num_bytes();
      places.emplace_back(item.entry.name, files.back());
      if (safetensors) continue;
      for (const std::string& name : item.other_names) places.emplace_back(name, files.back());
    }
  }
  std::sort(places.begin(), places.end());
  Json index = {{"metadata", {{"total_size", total_bytes}}}};
  index["weight_map"] = Json::object();
  for (auto& [name, file] : places) {
    static_cast<Json::object_t::Container&>(index["weight_map"].get_ref<Json::object_t&>()).emplace_back(name, file);
  }
  files.push_back(stem + extension + ".index.json");
  write_file_atomically(folder / files.back(), index.dump(2) + "\n");
  return files;
}

// A folder beside the target or, if the target exists, in it; always removed at the end.
class Staging {
 public:
  explicit Staging(const fs::path& target) {
    const std::string suffix = fmt::format("part-{}", ::getpid());
    path_ = fs::exists(target) ? target / ("." + suffix)
                               : target.parent_path() / fmt::format(".{}.{}", target.filename().string(), suffix);
    fs::remove_all(path_);  // of an earlier process with our id
    fs::create_directories(path_);
  }
  ~Staging() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The type of all floating-point weights; nothing if they differ (or there are none).
std::optional<WeightType> common_type(const std::vector<NamedTensor>& tensors, const WriteOptions& options) {
  std::optional<WeightType> common;
  for (const NamedTensor& named : tensors) {
    const WeightType type = weight_type(named.tensor.scalar_type());
    if (!is_floating(type)) continue;
    const WeightType written = options.dtype.value_or(type);
    if (common && *common != written) return std::nullopt;
    common = written;
  }
  return common;
}

Json config_to_write(Json config, const std::vector<NamedTensor>& tensors, const WriteOptions& options) {
  const auto type = common_type(tensors, options);
  if (!type) return config;
  return with_weight_type(std::move(config), std::string(torch_name(*type)));
}

bool is_weights_name(const std::string& name) {
  const auto is_shard = [&](const char* beginning, const char* ending) {
    return name.starts_with(beginning) && name.ends_with(ending) && name.find("-of-") != std::string::npos;
  };
  return name == "model.safetensors" || name == "model.safetensors.index.json" || name == "pytorch_model.bin" ||
         name == "pytorch_model.bin.index.json" || is_shard("model-", ".safetensors") ||
         is_shard("pytorch_model-", ".bin");
}

// Renames in the given order; then removes weights that are not in `names`.
void put_in_place(const fs::path& from, const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) fs::rename(from / name, folder / name);
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (is_weights_name(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      stale.push_back(entry.path());
    }
  }
  for (const fs::path& path : stale) fs::remove(path);
  flush_folder(folder);
}

void write_files(const fs::path& folder, const fs::path& target, const Json& config,
                 const std::vector<NamedTensor>& tensors, const ModelFolderOptions& options) {
  std::vector<std::string> names = write_weights(folder, tensors, options.weights);
  const auto write = [&](const std::string& name, const std::string& content) {
    write_file_atomically(folder / name, content);
    names.push_back(name);
  };
  for (const fs::path& file : options.tokenizer_files) write(file.filename(), read_file(file));
  const auto generation = options.generation_config ? options.generation_config : generation_config_of(config);
  if (generation) write("generation_config.json", generation->dump(2) + "\n");
  write("config.json", config_to_write(config, tensors, options.weights).dump(2) + "\n");

  if (fs::exists(target)) {
    put_in_place(folder, target, names);
  } else {
    fs::rename(folder, target);
    flush_folder(target.parent_path());
  }
}

}  // namespace

void write_weights_file(const fs::path& path, const std::vector<NamedTensor>& tensors, const WriteOptions& options) {
  write_one(path, distinct(tensors, options), options.format);
}

void write_model_folder(const fs::path& folder, const Json& config, const std::vector<NamedTensor>& tensors,
                        const ModelFolderOptions& options) {
  // "out/" and "out" are the same folder; the staging folder must be beside it, not in it.
  const fs::path target = folder.filename().empty() ? folder.parent_path() : folder;
  const std::string what = fmt::format("cannot write the model folder {}", target.string());
  if (target.empty()) throw UsageError("a model folder needs a name");
  if (std::error_code ignored; fs::exists(target, ignored) && !fs::is_directory(target, ignored)) {
    throw UsageError(what + ": it is a file");
  }
  try {
    const Staging staging(target);
    write_files(staging.path(), target, config, tensors, options);
  } catch (const fs::filesystem_error& error) {
    throw Error(what + ": " + error.code().message());
  } catch (const UsageError&) {  // its message already says what is wrong with the input
    throw;
  } catch (const Error& error) {  // names a file in the staging folder, which is gone
    throw error.in_context(what);
  }
}

}  // namespace tessera
