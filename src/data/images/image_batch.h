// Images of a dataset as tensors, and a loader of such batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image_dataset.h"
#include "data/loading/prefetch_loader.h"

namespace tessera {

struct ImageBatch {
  at::Tensor images;  // [B, 3, S, S], channels-last: normalised floats, or bytes (PixelKind)
  at::Tensor labels;  // [B], int64
};

enum class PixelKind {
  kNormalised,
  kBytes,  // a quarter of the memory and of the copy to a GPU; call normalise() there
};

// May be called from any thread. Errors name the file.
ImageBatch load_images(const ImageDataset& images, std::span<const std::int64_t> indices, std::uint32_t epoch,
                       PixelKind kind = PixelKind::kNormalised);

// Batches in order from number `begin`, each made by one of the threads. The dataset must outlive the loader; `batches`
// come from a sampler. At most options.num_ahead batches are in memory: a float batch of 512 takes 308 MB.
PrefetchLoader<ImageBatch> image_loader(const ImageDataset& images, std::vector<std::vector<std::int64_t>> batches,
                                        std::uint32_t epoch, PixelKind kind = PixelKind::kNormalised,
                                        std::int64_t begin = 0, PrefetchOptions options = {});

// Converts bytes [B, 3, S, S] on any device to what kNormalised gives, on the same device, in `type`.
at::Tensor normalise(const at::Tensor& bytes, const Normalization& normalization, at::ScalarType type = at::kFloat);

}  // namespace tessera
