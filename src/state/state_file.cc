#include "state/state_file.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "weights/safetensors.h"
#include "weights/weights.h"

namespace tessera {

namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{32} << 20;

std::string_view bytes_of(const at::Tensor& host) {
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

WeightEntry entry_of(const StateTensor& tensor) {
  WeightEntry entry;
  entry.name = tensor.name;
  entry.type = weight_type(tensor.type);
  entry.shape = tensor.shape;
  entry.strides = row_major_strides(tensor.shape);
  entry.numel = checked_numel(tensor.shape).value();
  return entry;
}

const WeightEntry* find(const Weights& weights, const StateTensor& wanted) {
  if (const WeightEntry* entry = weights.find(wanted.name)) return entry;
  for (const std::string& name : wanted.other_names) {
    if (const WeightEntry* entry = weights.find(name)) return entry;
  }
  return nullptr;
}

}  // namespace

void HostChunks::for_each(const kernels::SplitFloats& values, const std::function<void(std::string_view)>& take) {
  const bool is_on_host = values.values.is_cpu();
  if (is_on_host && !values.remainder.defined()) return take(bytes_of(values.values));
  const std::int64_t numel = values.numel(),
                     at_once = kChunkBytes / static_cast<std::int64_t>(c10::elementSize(values.type()));
  const auto chunk_at = [&](std::int64_t at) { return values.narrow(at, std::min(at_once, numel - at)).joined(); };
  if (is_on_host) {
    for (std::int64_t at = 0; at < numel; at += at_once) take(bytes_of(chunk_at(at)));
    return;
  }
  const auto start = [&](std::int64_t at, at::Tensor& host) {
    if (!host.defined()) host = link_.host_empty(kChunkBytes, at::kByte);
    const at::Tensor bytes = chunk_at(at).view(at::kByte);
    return link_.to_host(host.narrow(0, 0, bytes.numel()), bytes);
  };
  Transfer coming = start(0, bounce_[0]);
  for (std::int64_t at = 0; at < numel; at += at_once) {
    coming.wait();
    const std::int64_t num_bytes = std::min(at_once, numel - at) * (kChunkBytes / at_once);
    const at::Tensor here = bounce_[0].narrow(0, 0, num_bytes);
    std::swap(bounce_[0], bounce_[1]);
    if (at + at_once < numel) coming = start(at + at_once, bounce_[0]);
    take(bytes_of(here));
  }
}

StateWriter::StateWriter(const std::filesystem::path& path, at::Device device, const std::vector<StateTensor>& tensors,
                         std::map<std::string, std::string> metadata)
    : tensors_(tensors), file_(path), chunks_(device) {
  metadata.emplace("format", "pt");
  std::vector<WeightEntry> entries;
  for (const StateTensor& tensor : tensors_) {
    entries.push_back(entry_of(tensor));
    for (const std::string& name : tensor.other_names) metadata.emplace(name, tensor.name);
  }
  file_.write(compose_safetensors_header(entries, metadata));
}

void StateWriter::add(const at::Tensor& tensor) {
  const StateTensor& expected = tensors_.at(num_added_++);
  if (tensor.sizes() != at::IntArrayRef(expected.shape)) {
    throw Error(fmt::format("tensor '{}' does not have the announced shape", expected.name));
  }
  const at::Tensor flat = tensor.detach().to(expected.type).contiguous().view({-1});
  chunks_.for_each({flat}, [&](std::string_view bytes) { file_.write(bytes); });
}

void StateWriter::finish() {
  if (num_added_ != tensors_.size()) throw Error("a weight file was finished before all its tensors were added");
  file_.become_target();
}

StateReader::StateReader(const std::filesystem::path& path, const std::vector<StateTensor>& tensors,
                         const std::string& what)
    : path_(path), weights_(Weights::open(path)) {
  std::set<std::string_view> known;
  std::vector<std::string> missing, unknown, misshapen, mistakes;
  for (const StateTensor& tensor : tensors) {
    known.insert(tensor.name);
    known.insert(tensor.other_names.begin(), tensor.other_names.end());
    const WeightEntry* entry = find(weights_, tensor);
    if (entry == nullptr) {
      if (!tensor.name.ends_with("num_batches_tracked")) missing.push_back(tensor.name);
    } else if (entry->shape != tensor.shape) {
      misshapen.push_back(fmt::format("{} ({} in the file, {} in the model)", printable(tensor.name, 100),
                                      shape_text(entry->shape), shape_text(tensor.shape)));
    } else {
      entry_of_.emplace(tensor.name, entry);
    }
  }
  for (const WeightEntry& entry : weights_.entries()) {
    if (!known.contains(entry.name)) unknown.push_back(entry.name);
  }
  if (!missing.empty()) mistakes.push_back("missing in the file: " + listed(missing));
  if (!unknown.empty()) mistakes.push_back("unknown to the model: " + listed(unknown));
  if (!misshapen.empty()) mistakes.push_back("of another shape: " + listed(misshapen));
  if (mistakes.empty()) return;
  throw UsageError(
      fmt::format("{}: the {} not fit the model: {}", printable(path.string()), what, join(mistakes, "; ")));
}

at::Tensor StateReader::tensor(const std::string& name) const {
  return tensor_of(weights_, *entry_of_.at(name));
}

std::optional<double> StateReader::number(const std::string& key) const {
  const auto found = weights_.metadata().find(key);
  if (found == weights_.metadata().end()) return std::nullopt;
  const std::optional<double> number = parse_real(found->second);
  if (number && *number >= 0) return number;
  throw UsageError(fmt::format("{}: the metadata's {} is '{}': expected a number", printable(path_.string()), key,
                               printable(found->second)));
}

}  // namespace tessera
