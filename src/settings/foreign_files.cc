#include "settings/foreign_files.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "settings/ds_config.h"
#include "settings/fsdp_config.h"

namespace tessera {
namespace {

// As transformers accepts them: a path, or the JSON itself.
std::pair<std::string, std::string> origin_and_text(const char* option, const std::string& value) {
  if (trim(value).starts_with('{')) return {option, value};
  return {value, read_file(value)};
}

void apply_known(ForeignConfig config, OnDifference on_difference, Schema& schema, std::vector<std::string>& notes) {
  // Of what a command does not know, this alone changes what it shows: the memory.
  for (const ForeignValue& value : config.values) {
    if (schema.has("wrap") || value.setting != "wrap" || (value.text != "none" && value.text != "size")) continue;
    notes.push_back(fmt::format("{}: {} is not taken over: what is shown is for the model's own blocks (--wrap blocks)",
                                value.place, value.key));
  }
  std::erase_if(config.values, [&](const ForeignValue& value) { return !schema.has(value.setting); });
  apply(config, on_difference, schema, notes);
}

}  // namespace

void declare(Schema& schema, ForeignFiles& files, const std::string& group) {
  schema.text("deepspeed", &files.deepspeed)
      .group(group)
      .help("DeepSpeed's ds_config.json: how the run is distributed, and more");
  schema.text("fsdp", &files.fsdp)
      .group(group)
      .help("\"full_shard auto_wrap offload\": a strategy and its options; offload covers parameters and optimizer");
  schema.text("fsdp_config", &files.fsdp_config).group(group).help("JSON file with the details of --fsdp");
}

void read_foreign_files(const ForeignFiles& files, Schema& schema, std::vector<std::string>& notes) {
  if (!files.deepspeed.empty() && (!files.fsdp.empty() || !files.fsdp_config.empty())) {
    throw UsageError("--deepspeed and --fsdp exclude each other; give one");
  }
  if (!files.deepspeed.empty()) {
    const auto [origin, text] = origin_and_text("--deepspeed", files.deepspeed);
    apply_known(read_ds_config(origin, text), OnDifference::kRefuse, schema, notes);
  }
  apply_known(read_fsdp_words(files.fsdp), OnDifference::kRefuse, schema, notes);
  if (!files.fsdp_config.empty()) {
    const auto [origin, text] = origin_and_text("--fsdp_config", files.fsdp_config);
    apply_known(read_fsdp_config(origin, text), OnDifference::kYield, schema, notes);
  }
}

}  // namespace tessera
