#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/schema.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"
#include "core/output.h"
#include "core/quantity.h"
#include "core/text.h"
#include "weights/model_folder.h"
#include "weights/weight_summary.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Subject {
  fs::path path;
  Json config = Json::object();
  std::string architecture, model_type;  // empty for a lone file
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
  for (const WeightTie& tie : summary.ties) {
    text += fmt::format("tied        {} is {} (according to {})\n", printable(tie.name), printable(tie.held_by),
                        tie.said_by);
  }
  std::size_t width = 4;
  for (const WeightPart& part : summary.parts) width = std::max(width, printable(part.name).size());
  text += fmt::format("\n  {:<{}}  {:>7}  {:>15}  {:>8}  {:>10}  dtype\n", "part", width, "tensors", "parameters",
                      "share", "bytes");
  for (const WeightPart& part : summary.parts) text += part_line(part, summary, width);
  const auto num_blocks = std::count_if(summary.parts.begin(), summary.parts.end(), [](auto& p) { return p.is_block; });
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
  std::error_code ignored;
  if (fs::is_directory(subject.path, ignored) && fs::exists(subject.path / "config.json", ignored)) {
    const ModelFolder folder = ModelFolder::open(subject.path);
    subject.config = folder.config();
    subject.architecture = folder.architecture();
    subject.model_type = folder.model_type();
  }
  return subject;
}

}  // namespace

int run_inspect(const std::vector<std::string>& args) {
  bool as_json = false;
  std::vector<std::string> words;
  Schema schema("tessera inspect",
                "what a model folder or weight file holds: parameters per block, bytes, dtype, ties");
  schema.boolean("json", &as_json).preset("false").help("print one JSON object");
  schema.positionals("FOLDER", &words);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (words.size() != 1) {
    throw UsageError("tessera inspect takes one model folder or one .safetensors, .bin or .pth file");
  }
  const Subject subject = find_subject(words.front());
  const Weights weights = Weights::open(subject.path);
  const WeightSummary summary = summarise(weights, subject.config);
  print_out(as_json ? json_text(summary_json(subject, weights, summary), 2) + "\n"
                    : summary_text(subject, weights, summary));
  return 0;
}

}  // namespace tessera
