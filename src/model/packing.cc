#include "model/packing.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace tessera {
namespace {

struct Packer {
  std::vector<std::int64_t> ids, positions, targets;
  std::vector<std::int32_t> starts{0};
  std::int64_t max_seqlen = 0, num_counted = 0;

  void end_sequence() {
    const auto end = static_cast<std::int32_t>(ids.size());
    max_seqlen = std::max<std::int64_t>(max_seqlen, end - starts.back());
    starts.push_back(end);
  }

  PackedBatch batch(const at::Device& device) const {
    const auto tensor = [&](const auto& values, at::ScalarType type) {
      return at::tensor(values, at::dtype(type)).to(device);
    };
    return {tensor(ids, at::kLong),
            tensor(positions, at::kLong),
            tensor(targets, at::kLong),
            tensor(starts, at::kInt),
            max_seqlen,
            num_counted};
  }
};

}  // namespace

PackedBatch pack_padded(const at::Tensor& ids, const at::Tensor& mask, const at::Tensor& labels) {
  if (ids.dim() != 2 || mask.sizes() != ids.sizes() || (labels.defined() && labels.sizes() != ids.sizes())) {
    throw Error("packing: ids, mask and labels must all be [B, S]");
  }
  const std::int64_t num_rows = ids.size(0), width = ids.size(1);
  const at::Tensor host_ids = ids.cpu().to(at::kLong).contiguous(), host_mask = mask.cpu().to(at::kLong).contiguous();
  const at::Tensor host_labels = labels.defined() ? labels.cpu().to(at::kLong).contiguous() : at::Tensor();
  Packer packer;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::int64_t* id = host_ids.const_data_ptr<std::int64_t>() + row * width;
    const std::int64_t* real = host_mask.const_data_ptr<std::int64_t>() + row * width;
    const std::int64_t* label =
        host_labels.defined() ? host_labels.const_data_ptr<std::int64_t>() + row * width : nullptr;
    const std::int64_t* const first = std::find_if(real, real + width, [](std::int64_t m) { return m != 0; });
    const std::int64_t* const last = std::find(first, real + width, 0);
    if (first == last) throw Error(fmt::format("packing: row {} has no real token", row));
    if (std::any_of(last, real + width, [](std::int64_t m) { return m != 0; })) {
      throw Error(fmt::format("packing: row {} has padding between real tokens; it must be on one side only", row));
    }
    for (std::int64_t at = first - real; at < last - real; ++at) {
      const bool counts = label != nullptr && at + 1 < width && label[at + 1] != kIgnoredTarget;
      packer.ids.push_back(id[at]);
      packer.positions.push_back(at - (first - real));
      packer.targets.push_back(counts ? label[at + 1] : kIgnoredTarget);
      packer.num_counted += counts;
    }
    packer.end_sequence();
  }
  return packer.batch(ids.device());
}

PackedBatch pack_sequences(const std::vector<std::vector<std::int64_t>>& sequences, const at::Device& device) {
  if (sequences.empty()) throw Error("packing: there are no sequences");
  Packer packer;
  for (const auto& sequence : sequences) {
    if (sequence.empty()) {
      throw Error(fmt::format("packing: sequence {} is empty; it needs at least one token", packer.starts.size() - 1));
    }
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      packer.ids.push_back(sequence[i]);
      packer.positions.push_back(static_cast<std::int64_t>(i));
      packer.targets.push_back(kIgnoredTarget);
    }
    packer.end_sequence();
  }
  return packer.batch(device);
}

}  // namespace tessera
