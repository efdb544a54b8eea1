// Model folders and weight files: `tessera inspect` shows what they hold, `tessera convert` writes them in another
// format or type.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/output.h"
#include "core/quantity.h"
#include "core/text.h"
#include "weights/checkpoint_index.h"
#include "weights/model_folder.h"
#include "weights/weight_summary.h"
#include "weights/weights.h"
#include "weights/write_model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct InspectSettings {
  std::vector<std::string> words;
  bool as_json = false;
};

struct Subject {
  fs::path path;
  Json config = Json::object();
  std::string architecture, model_type;  // empty for a lone file
  bool is_checkpoint = false;            // without weights that transformers reads
};

std::string types_text(const WeightPart& part) {
  return join({part.types.begin(), part.types.end()}, ", ");
}

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string part_line(const WeightPart& part, const WeightSummary& summary, std::size_t width) {
  return fmt::format("  {:<{}}  {:>7}  {:>15}  {:>6.2f} %  {:>10}  {}\n", printable(part.name), width, part.num_tensors,
                     grouped(part.num_parameters), percent(part.num_parameters, summary.all.num_parameters),
                     human_bytes(part.num_bytes), types_text(part));
}

std::string summary_text(const Subject& subject, const Weights& weights, const WeightSummary& summary) {
  const WeightPart& all = summary.all;
  std::string text = fmt::format("{}{}\n", subject.path.string(),
                                 subject.architecture.empty() ? "" : ": " + printable(subject.architecture));
  text += fmt::format("parameters  {}\n", grouped(all.num_parameters));
  if (all.num_buffer_elements > 0) text += fmt::format("in buffers  {}\n", grouped(all.num_buffer_elements));
  text += fmt::format("bytes       {} ({})\n", grouped(all.num_bytes), human_bytes(all.num_bytes));
  text += fmt::format("dtype       {}\n", types_text(all));
  for (const auto& file : weights.files()) {
    text += fmt::format("file        {} ({} bytes)\n", file->path().filename().string(),
                        grouped(static_cast<std::int64_t>(file->bytes().size())));
  }
  if (subject.is_checkpoint) {
    text += fmt::format(
        "loaded by   Tessera; for transformers: tessera convert {} FOLDER, or --save_hf_weights in training\n",
        subject.path.string());
  }
  for (const WeightTie& tie : summary.ties) {
    text += fmt::format("tied        {} is {} (according to {})\n", printable(tie.name), printable(tie.held_by),
                        tie.said_by);
  }
  std::size_t width = 4;
  for (const WeightPart& part : summary.parts) width = std::max(width, printable(part.name).size());
  text += fmt::format("\n  {:<{}}  {:>7}  {:>15}  {:>8}  {:>10}  dtype\n", "part", width, "tensors", "parameters",
                      "share", "bytes");
  for (const WeightPart& part : summary.parts) text += part_line(part, summary, width);
  const auto num_blocks = std::ranges::count_if(summary.parts, [](auto& p) { return p.is_block; });
  text += fmt::format("\nblocks      {} blocks with {} parameters, {:.0f} %\n", num_blocks,
                      grouped(summary.num_parameters_in_blocks),
                      percent(summary.num_parameters_in_blocks, all.num_parameters));
  for (const WeightPart& part : summary.parts) {
    const double share = percent(part.num_parameters, all.num_parameters);
    // What else matters: parts outside the blocks with at least 1 % of the parameters.
    if (part.is_block || share < 1) continue;
    text += fmt::format("outside     {} with {} parameters, {:.0f} %\n", printable(part.name),
                        grouped(part.num_parameters), share);
  }
  return text;
}

Json part_json(const WeightPart& part) {
  Json json = {{"tensors", part.num_tensors}, {"parameters", part.num_parameters}, {"bytes", part.num_bytes}};
  if (part.num_buffer_elements > 0) json["buffer_elements"] = part.num_buffer_elements;
  json["dtype"] = part.types;
  return json;
}

Json summary_json(const Subject& subject, const Weights& weights, const WeightSummary& summary) {
  Json json = {{"path", subject.path.string()}};
  if (!subject.architecture.empty()) json["architecture"] = subject.architecture;
  if (!subject.model_type.empty()) json["model_type"] = subject.model_type;
  json["format"] = weights.format() == WeightFormat::kSafetensors ? "safetensors" : "bin";
  json.update(part_json(summary.all));
  json["parameters_in_blocks"] = summary.num_parameters_in_blocks;
  json["files"] = Json::array();
  for (const auto& file : weights.files()) {
    json["files"].push_back({{"name", file->path().filename().string()}, {"bytes", file->bytes().size()}});
  }
  json["ties"] = Json::array();
  for (const WeightTie& tie : summary.ties) {
    json["ties"].push_back({{"name", tie.name}, {"held_by", tie.held_by}, {"said_by", tie.said_by}});
  }
  json["parts"] = Json::array();
  for (const WeightPart& part : summary.parts) {
    Json row = {{"name", part.name}, {"block", part.is_block}};
    row.update(part_json(part));
    json["parts"].push_back(std::move(row));
  }
  return json;
}

Subject find_subject(const std::string& word) {
  Subject subject{find_model_folder(word, Environment::of_process()), Json::object(), "", ""};
  subject.is_checkpoint = is_there(subject.path / kIndexFile) && !is_there(subject.path / "model.safetensors");
  if (is_folder(subject.path) && is_there(subject.path / "config.json")) {
    const ModelFolder folder = ModelFolder::open(subject.path);
    subject.config = folder.config();
    subject.architecture = folder.architecture();
    subject.model_type = folder.model_type();
  }
  return subject;
}

void declare(Schema& schema, InspectSettings& s) {
  schema.boolean("json", &s.as_json, "print one JSON object");
  schema.positionals("FOLDER", &s.words);
}

int run_inspect(Schema&, InspectSettings& s) {
  if (s.words.size() != 1) {
    throw UsageError("tessera inspect takes one model folder or one .safetensors, .bin or .pth file");
  }
  const Subject subject = find_subject(s.words.front());
  const Weights weights = Weights::open(subject.path);
  const WeightSummary summary = summarise(weights, subject.config);
  print_out(s.as_json ? json_text(summary_json(subject, weights, summary), 2) + "\n"
                      : summary_text(subject, weights, summary));
  return 0;
}

struct ConvertSettings {
  std::vector<std::string> words;
  std::string dtype, format;
  std::int64_t max_shard_bytes = 0;
  bool shard_size_given = false, overwrites = false;
};

void declare(Schema& schema, ConvertSettings& settings) {
  schema.positionals("SOURCE TARGET", &settings.words);
  schema.text("dtype", &settings.dtype, "type of the floating-point tensors in TARGET",
              {.preset = "keep", .choices = {"keep", "float32", "bfloat16", "float16", "fp32", "bf16", "fp16"}});
  schema.text(
      "format", &settings.format,
      "format of the weights; auto: by the end of TARGET's name (.safetensors; .bin, .pth, .pt), safetensors for a "
      "folder",
      {.preset = "auto", .choices = {"auto", "safetensors", "bin"}});
  schema.bytes("max_shard_size", &settings.max_shard_bytes, "larger weights are split into several files with an index",
               {.preset = "5G", .at_least = 1});
  schema.boolean("overwrite", &settings.overwrites, "replace the model in a TARGET that exists; never SOURCE itself");
}

std::optional<WeightType> type_of(const std::string& dtype) {
  if (dtype == "fp32" || dtype == "float32") return WeightType::kF32;
  if (dtype == "fp16" || dtype == "float16") return WeightType::kF16;
  if (dtype == "bf16" || dtype == "bfloat16") return WeightType::kBF16;
  return std::nullopt;
}

// Endings of other programs' files: a folder of such a name would be taken for one.
const std::vector<std::string> kOtherFormats = {
    ".gguf",    ".ggml",    ".llamafile", ".onnx",   ".h5",   ".hdf5", ".keras", ".pb",   ".tflite",
    ".msgpack", ".mlmodel", ".mlpackage", ".engine", ".trt",  ".plan", ".ckpt",  ".nemo", ".npz",
    ".npy",     ".distcp",  ".pkl",       ".pickle", ".json", ".zip",  ".tar",   ".gz",   ".tgz"};

// The format that a file's name asks for; nothing: the name is a folder's.
std::optional<WeightFormat> format_of_name(const fs::path& target) {
  if (is_folder(target)) return std::nullopt;  // "bloom.pt" may be one
  const std::string extension = lower_case(target.extension().string());
  if (extension == ".safetensors") return WeightFormat::kSafetensors;
  if (extension == ".bin" || extension == ".pth" || extension == ".pt") return WeightFormat::kTorch;
  if (std::ranges::find(kOtherFormats, extension) != kOtherFormats.end()) {
    throw UsageError(
        fmt::format("{}: {} files are not written; give a name that ends in .safetensors, .bin, .pth or .pt, or the "
                    "name of a folder for a whole model",
                    target.string(), extension));
  }
  return std::nullopt;
}

// Replaced files cannot be had back, so it must be asked for; and a source is never replaced by what is made of it.
void check_target(const fs::path& source, const Weights& weights, const fs::path& target, bool overwrites) {
  std::error_code ignored;
  if (!is_there(target)) return;
  bool is_source = fs::equivalent(source, target, ignored);
  for (const auto& file : weights.files()) is_source = is_source || fs::equivalent(file->path(), target, ignored);
  if (is_source) {
    throw UsageError(
        fmt::format("{} is the source itself, and would be lost if the conversion failed: give the target "
                    "another name",
                    target.string()));
  }
  const bool to_folder = is_folder(target);
  if (overwrites || (to_folder && fs::is_empty(target, ignored))) return;
  throw UsageError(fmt::format("{} exists: give the target another name, or --overwrite to replace {}", target.string(),
                               to_folder ? "the model in it" : "it"));
}

// All names, including those that safetensors keep only in their metadata: they share a tensor.
std::vector<NamedTensor> tensors_in(const Weights& weights) {
  std::vector<NamedTensor> tensors;
  for (const WeightEntry& entry : weights.entries()) tensors.push_back({entry.name, tensor_of(weights, entry)});
  for (const auto& [name, held_by] : weights.ties()) {
    if (weights.find(name) != nullptr) continue;
    const auto holder =
        std::ranges::find_if(tensors, [&name = held_by](const NamedTensor& named) { return named.name == name; });
    tensors.push_back({name, at::Tensor(holder->tensor)});  // a copy first: push_back may move the vector
  }
  return tensors;
}

void convert(const fs::path& source, const fs::path& target, const ConvertSettings& settings) {
  WriteOptions options;
  options.dtype = type_of(settings.dtype);
  options.format = settings.format == "bin" ? WeightFormat::kTorch : WeightFormat::kSafetensors;
  options.max_shard_bytes = settings.max_shard_bytes;
  const std::optional<WeightFormat> format = format_of_name(target);
  const Weights weights = Weights::open(source);
  check_target(source, weights, target, settings.overwrites);
  const std::vector<NamedTensor> tensors = tensors_in(weights);
  if (format) {
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
  folder_options.tokenizer_files = tokenizer_files_in(folder.path());
  write_model_folder(target, folder.config(), tensors, folder_options);
}

int run_convert(Schema& schema, ConvertSettings& settings) {
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

}  // namespace

Command inspect_command() {
  return with_settings<InspectSettings>(
      {.name = "inspect",
       .summary = "parameters, bytes, dtype and ties of a model folder or weight file",
       .about = "what a model folder or weight file holds: parameters per block, bytes, dtype, ties"},
      declare, run_inspect);
}

Command convert_command() {
  return with_settings<ConvertSettings>(
      {.name = "convert", .summary = "write a model folder or weight file in another format or type"}, declare,
      run_convert);
}

}  // namespace tessera
