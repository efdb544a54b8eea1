#include "weights/foreign/foreign_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

bool has_file(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored);
}

std::string unwrapped_name(std::string name) {
  for (const std::string_view part : {"_fsdp_wrapped_module.", "_orig_mod.", "_checkpoint_wrapped_module."}) {
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part, at)) {
      // A level of its own, not the end of a longer one.
      if (at == 0 || name[at - 1] == '.') {
        name.erase(at, part.size());
      } else {
        at += part.size();
      }
    }
  }
  return name;
}

void ForeignTensors::add_file(const std::string& file) {
  std::error_code error;
  const auto bytes = fs::file_size(folder_ / file, error);
  if (error) throw UsageError(fmt::format("{}: {}", (folder_ / file).string(), error.message()));
  checkpoint_.index.files[file] = {static_cast<std::int64_t>(bytes), {}, {}};
}

void ForeignTensors::add_records(const std::string& file, const PickledFile& opened) {
  for (const StoredRecord& record : opened.records()) checkpoint_.index.files.at(file).records.push_back(record);
}

std::unique_ptr<PickledFile> ForeignTensors::open(const std::string& file) {
  add_file(file);
  auto opened = std::make_unique<PickledFile>(folder_ / file);
  add_records(file, *opened);
  return opened;
}

StoredTensor ForeignTensors::stored(const std::string& file, const WeightEntry& entry) {
  return {entry.type, entry.shape, {{file, 0, entry.numel, entry.offset_bytes}}};
}

void ForeignTensors::add(const std::string& name, StoredTensor tensor) {
  if (checkpoint_.index.tensors.emplace(name, std::move(tensor)).second) return;
  throw UsageError(fmt::format("{}: tensor '{}' occurs twice", folder_.string(), printable(name)));
}

void ForeignTensors::add_model(const std::string& name, StoredTensor tensor) {
  add(kModelPrefix + unwrapped_name(name), std::move(tensor));
}

void ForeignTensors::add_state(const std::string& state, const std::string& parameter, StoredTensor tensor) {
  if (const auto number = parse_integer(parameter)) {
    checkpoint_.numbered[*number].emplace(state, std::move(tensor));
    return;
  }
  add(fmt::format("{}{}.{}", kOptimizerPrefix, state, unwrapped_name(parameter)), std::move(tensor));
}

void ForeignTensors::add_optimizer(const PickledNode& state_dict, const std::string& file) {
  for (const auto& [parameter, states] : state_dict.at("state").entries()) {
    for (const auto& [state, value] : states.entries()) {
      if (state == "step") {
        set_num_updates(value.number(), (folder_ / file).string());
      } else if (value.is_tensor()) {
        add_state(state, parameter, stored(file, value.tensor()));
      } else if (!value.is_none()) {
        value.refuse("a state that is no tensor, which is not supported");
      }
    }
  }
  for (const PickledNode& group : state_dict.at("param_groups").list()) {
    std::vector<std::int64_t>& numbers = checkpoint_.groups.emplace_back();
    for (const PickledNode& parameter : group.at("params").list()) {
      if (const auto number = parse_integer(parameter.key_text())) numbers.push_back(*number);
    }
  }
}

void ForeignTensors::set_num_updates(double number, const std::string& origin) {
  const auto [known, is_new] = checkpoint_.index.numbers.try_emplace(kNumUpdates, number);
  if (is_new || known->second == number) return;
  throw UsageError(fmt::format("{}: some parameters were updated {} times, others {} times, which is not supported",
                               origin, known->second, number));
}

ForeignCheckpoint ForeignTensors::finish() {
  CheckpointIndex& index = checkpoint_.index;
  // DistributedDataParallel puts all parameters below 'module'.
  const std::string wrapper = std::string(kModelPrefix) + "module.";
  const auto is_wrapped = [&](const auto& each) {
    return !each.first.starts_with(kModelPrefix) || each.first.starts_with(wrapper);
  };
  if (std::ranges::all_of(index.tensors, is_wrapped)) {
    std::map<std::string, StoredTensor> renamed;
    for (auto& [name, tensor] : index.tensors) {
      // "model.module.x", "optimizer.exp_avg.module.x"
      const std::size_t dot = name.find('.', name.starts_with(kModelPrefix) ? 0 : name.find('.') + 1);
      std::string plain = name;
      if (plain.compare(dot, 8, ".module.") == 0) plain.erase(dot, 7);
      renamed.emplace(std::move(plain), std::move(tensor));
    }
    index.tensors = std::move(renamed);
  }
  // A tensor without elements has no parts.
  for (auto& [name, tensor] : index.tensors) {
    std::erase_if(tensor.parts, [](const StoredPart& part) { return part.begin == part.end; });
  }
  check_index(index, folder_.string());
  return std::move(checkpoint_);
}

}  // namespace tessera
