#include "cli/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "config/schema.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/output.h"
#include "core/quantity.h"
#include "weights/model_folder.h"
#include "weights/weights.h"
#include "weights/write_model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct ConvertSettings {
  std::vector<std::string> words;
  std::string dtype, format;
  std::int64_t max_shard_bytes = 0;
  bool shard_size_given = false, overwrites = false;
};

void declare(Schema& schema, ConvertSettings& settings) {
  schema.positionals("SOURCE TARGET", &settings.words);
  schema.text("dtype", &settings.dtype)
      .preset("keep")
      .choices({"keep", "float32", "bfloat16", "float16", "fp32", "bf16", "fp16"})
      .help("type of the floating-point tensors in TARGET");
  schema.text("format", &settings.format)
      .preset("auto")
      .choices({"auto", "safetensors", "bin"})
      .help(
          "format of the weights; auto: by the end of TARGET's name (.safetensors; .bin, .pth, .pt), safetensors for a "
          "folder");
  schema.bytes("max_shard_size", &settings.max_shard_bytes)
      .preset("5G")
      .at_least(1)
      .help("larger weights are split into several files with an index");
  schema.boolean("overwrite", &settings.overwrites)
      .preset("false")
      .help("replace the model in a TARGET that exists; never SOURCE itself");
}

std::optional<WeightType> type_of(const std::string& dtype) {
  if (dtype == "fp32" || dtype == "float32") return WeightType::kF32;
  if (dtype == "fp16" || dtype == "float16") return WeightType::kF16;
  if (dtype == "bf16" || dtype == "bfloat16") return WeightType::kBF16;
  return std::nullopt;
}

// The format that a file's name asks for; nothing: the name is a folder's.
std::optional<WeightFormat> format_of_name(const fs::path& target) {
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) return std::nullopt;  // "bloom.pt" may be one
  const std::string extension = target.extension();
  if (extension == ".safetensors") return WeightFormat::kSafetensors;
  if (extension == ".bin" || extension == ".pth" || extension == ".pt") return WeightFormat::kTorch;
  return std::nullopt;
}

// Replaced files cannot be had back, so it must be asked for; and a source is never replaced by what is made of it.
void check_target(const fs::path& source, const Weights& weights, const fs::path& target, bool overwrites) {
  std::error_code ignored;
  if (!fs::exists(target, ignored)) return;
  bool is_source = fs::equivalent(source, target, ignored);
  for (const auto& file : weights.files()) is_source = is_source || fs::equivalent(file->path(), target, ignored);
  if (is_source) {
    throw UsageError(
        fmt::format("{} is the source itself, and would be lost if the conversion failed: give the target "
                    "another name",
                    target.string()));
  }
  const bool is_folder = fs::is_directory(target, ignored);
  if (overwrites || (is_folder && fs::is_empty(target, ignored))) return;
  throw UsageError(fmt::format("{} exists: give the target another name, or --overwrite to replace {}", target.string(),
                               is_folder ? "the model in it" : "it"));
}

// All names, including those that safetensors keep only in their metadata: they share a tensor.
std::vector<NamedTensor> tensors_in(const Weights& weights) {
  std::vector<NamedTensor> tensors;
  for (const WeightEntry& entry : weights.entries()) tensors.push_back({entry.name, tensor_of(weights, entry)});
  for (const auto& [name, held_by] : weights.ties()) {
    if (weights.find(name) != nullptr) continue;
    const auto holder = std::find_if(tensors.begin(), tensors.end(),
                                     [&name = held_by](const NamedTensor& named) { return named.name == name; });
    tensors.push_back({name, at::Tensor(holder->tensor)});  // a copy first: push_back may move the vector
  }
  return tensors;
}

void convert(const fs::path& source, const fs::path& target, const ConvertSettings& settings) {
  WriteOptions options;
  options.dtype = type_of(settings.dtype);
  options.format = settings.format == "bin" ? WeightFormat::kTorch : WeightFormat::kSafetensors;
  options.max_shard_bytes = settings.max_shard_bytes;
  const Weights weights = Weights::open(source);
  check_target(source, weights, target, settings.overwrites);
  const std::vector<NamedTensor> tensors = tensors_in(weights);
  if (const auto format = format_of_name(target)) {
    if (settings.format != "auto" && options.format != *format) {
      throw UsageError(
          fmt::format("--format {} does not match the target's name, {}", settings.format, target.string()));
    }
    if (settings.shard_size_given) {
      throw UsageError(
          fmt::format("--max_shard_size does not apply to {}, which is one file; give a folder", target.string()));
    }
    options.format = *format;
    write_weights_file(target, tensors, options);
    return;
  }
  if (!fs::is_directory(source)) {
    throw UsageError(
        fmt::format("{} is a file without a config.json, so it cannot become a model folder; give the target a name "
                    "that ends in .safetensors, .bin, .pth or .pt",
                    source.string()));
  }
  const ModelFolder folder = ModelFolder::open(source);
  ModelFolderOptions folder_options;
  folder_options.weights = options;
  folder_options.generation_config = folder.generation_config();
  folder_options.tokenizer_files = folder.tokenizer_files();
  write_model_folder(target, folder.config(), tensors, folder_options);
}

}  // namespace

int run_convert(const std::vector<std::string>& args) {
  ConvertSettings settings;
  Schema schema("tessera convert", "write a model folder or weight file in another format or type");
  declare(schema, settings);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  settings.shard_size_given = schema.at("max_shard_size").is_set();
  if (settings.words.size() != 2) throw UsageError("tessera convert takes two words: SOURCE and TARGET");
  const fs::path target = settings.words[1];
  convert(find_model_folder(settings.words[0], Environment::of_process()), target, settings);
  const Weights written = Weights::open(target);
  std::int64_t bytes = 0;
  for (const auto& file : written.files()) bytes += static_cast<std::int64_t>(file->bytes().size());
  print_out(fmt::format("{}: {} tensors, {} in {} file{}\n", target.string(), written.entries().size(),
                        human_bytes(bytes), written.files().size(), written.files().size() == 1 ? "" : "s"));
  return 0;
}

}  // namespace tessera
