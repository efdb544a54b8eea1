#include "weights/write_model_folder.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/output_file.h"
#include "weights/model_folder.h"
#include "weights/weight_tensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

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
  // transformers 5 writes "dtype"; both versions read "torch_dtype". Neither key may keep another type.
  const bool is_new = config.contains("dtype");
  if (is_new) config["dtype"] = std::string(torch_name(*type));
  if (!is_new || config.contains("torch_dtype")) config["torch_dtype"] = std::string(torch_name(*type));
  return config;
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

std::vector<NamedTensor> tensors_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined()) tensors.push_back({item.key(), item.value()});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors.push_back({item.key(), item.value()});
  }
  return tensors;
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
