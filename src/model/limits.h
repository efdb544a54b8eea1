// Upper limits: a config beyond these is a mistake, not a model.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::int64_t kMaxVocabSize = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxHiddenSize = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxLayers = 100'000;
inline constexpr std::int64_t kMaxSeqLength = std::int64_t{1} << 24;
inline constexpr double kMaxDropout = 0.99;  // at 1 everything would be dropped

}  // namespace tessera
