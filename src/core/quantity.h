// Sizes and durations as users write them ('4G', '30s'), read and written in this one place.
//
// Sizes are powers of 1024, as nccl-tests reads them: K, M, G, T, each with an optional B or iB; no suffix is bytes.
// Durations: ms, s, m (or min), h; no suffix is seconds. Fractions are allowed (1.5G, 0.5s) and
// rounded to whole bytes or ms; a fraction of a single byte or ms is refused. Upper and lower case are the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// The types of numbers that a run computes with, for code that does not know torch.
enum class NumberType { kFloat32, kBFloat16, kFloat16 };

inline constexpr double kBytesPerMb = 1 << 20;  // as nvidia-smi and psrecord count

// Throw UsageError with the text and the allowed forms if the text is not such a quantity, is negative, or overflows.
std::int64_t parse_bytes(std::string_view text);
std::chrono::milliseconds parse_duration(std::string_view text);

// Exact and shortest, so that parse(format(x)) == x: 4294967296 -> "4G", 1000 -> "1000"; 90000 ms -> "90s",
// 600 s -> "10m".
std::string format_bytes(std::int64_t bytes);
std::string format_duration(std::chrono::milliseconds duration);

// As Slurm writes times: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
// days-hours:minutes:seconds. None for a text of another form.
std::optional<long long> slurm_seconds(std::string_view text);

// For people, rounded: "1.5 GiB", "312 MiB", "17 B".
std::string human_bytes(std::int64_t bytes);

}  // namespace tessera
