#include "weights/place_tensor.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

// The largest index into the storage that the tensor uses (its offset if it has no element); nothing if a number is
// negative or overflows.
std::optional<std::int64_t> last_element(const PickledTensor& tensor) {
  std::int64_t last = tensor.offset;
  if (last < 0) return std::nullopt;
  const bool empty = checked_numel(tensor.shape) == 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    if (tensor.strides[i] < 0) return std::nullopt;
    if (empty) continue;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  return last;
}

}  // namespace

WeightEntry place_tensor(const PickledTensor& tensor, const StorageBytes* storage, const std::string& origin) {
  const auto fail = [&](const std::string& what) {
    throw UsageError(fmt::format("{}: tensor '{}': {}", origin, printable(tensor.name), what));
  };
  const std::string key = printable(tensor.storage_key);
  if (storage == nullptr) fail(fmt::format("its storage {} is missing", key));
  const std::int64_t element = bytes_of(tensor.type);
  if (tensor.storage_numel < 0 || static_cast<std::uint64_t>(tensor.storage_numel) > storage->num_bytes / element) {
    fail(fmt::format("its storage claims {} elements of {} bytes, but storage {} has {} bytes", tensor.storage_numel,
                     element, key, storage->num_bytes));
  }
  const auto numel = checked_numel(tensor.shape);
  if (!numel) fail(fmt::format("a shape of {} is negative or overflows", shape_text(tensor.shape)));
  if (tensor.strides.size() != tensor.shape.size()) fail("its numbers of strides and sizes differ");
  const auto last = last_element(tensor);
  if (!last || *last >= tensor.storage_numel + (*numel == 0 ? 1 : 0)) {
    fail(fmt::format("shape {}, strides {} and offset {} reach outside its storage of {} elements",
                     shape_text(tensor.shape), shape_text(tensor.strides), tensor.offset, tensor.storage_numel));
  }
  if (*numel > tensor.storage_numel) {
    fail(fmt::format("a shape of {} repeats the elements of a smaller storage ({}); save it with .contiguous()",
                     shape_text(tensor.shape), tensor.storage_numel));
  }
  const std::int64_t offset_bytes = static_cast<std::int64_t>(storage->offset_bytes) + tensor.offset * element;
  return {tensor.name, tensor.type, tensor.shape, tensor.strides, *numel, offset_bytes, 0};
}

}  // namespace tessera
