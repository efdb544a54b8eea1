#include "experiment/import/slurm_values.h"

#include <fmt/format.h>

#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr long long kMostSlurmNumber = 100'000'000;

std::optional<long long> slurm_number(std::string_view text) {
  const auto number = parse_integer(text);
  return number && *number >= 0 && *number <= kMostSlurmNumber ? number : std::nullopt;
}

// The number behind the last colon, 1 where there is none: a100:4, a100.
std::optional<int> gpus_of_piece(const std::string& piece) {
  const std::string text = piece.substr(0, piece.find('('));  // gpu:4(S:0-1)
  const std::size_t colon = text.rfind(':');
  const auto number = slurm_number(text.substr(colon == std::string::npos ? 0 : colon + 1));
  if (number) return static_cast<int>(*number);
  const bool is_type = !text.empty() && text.find_first_not_of("0123456789") != std::string::npos;
  return is_type ? std::optional(1) : std::nullopt;
}

}  // namespace

std::optional<std::string> slurm_time(std::string_view text) {
  const auto parsed = slurm_seconds(text);
  if (!parsed) return std::nullopt;
  const long long seconds = *parsed;
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? clock : fmt::format("{}-{}", seconds / 86400, clock);
}

std::optional<long long> slurm_megabytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::size_t unit = std::string_view("KMGT").find(static_cast<char>(text.back() & ~0x20));
  const bool has_unit = text.back() > '9' && unit != std::string_view::npos;
  const auto number = slurm_number(has_unit ? text.substr(0, text.size() - 1) : text);
  if (!number) return std::nullopt;
  if (!has_unit) return *number;
  if (unit == 0) return (*number + 1023) / 1024;
  return *number << (10 * (unit - 1));
}

std::string megabytes_text(long long megabytes) {
  if (megabytes == 0) return "0";
  return megabytes % 1024 == 0 ? fmt::format("{}G", megabytes / 1024) : fmt::format("{}M", megabytes);
}

std::optional<int> slurm_count(std::string_view text) {
  const auto number = slurm_number(text.substr(0, text.find('-')));
  return number && *number >= 1 && *number <= 1'000'000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int> slurm_gpus(std::string_view text) {
  int total = 0;
  for (const std::string& piece : split(text, ',')) {
    const auto gpus = gpus_of_piece(piece);
    if (!gpus) return std::nullopt;
    total += *gpus;
  }
  return total;
}

std::optional<int> slurm_gres_gpus(std::string_view text) {
  std::optional<int> total;
  for (std::string piece : split(text, ',')) {
    for (const char* prefix : {"gres/", "gres:"}) {
      if (piece.starts_with(prefix)) piece.erase(0, 5);
    }
    if (piece != "gpu" && !piece.starts_with("gpu:")) continue;
    const auto gpus = gpus_of_piece(piece);
    if (!gpus) return std::nullopt;
    total = total.value_or(0) + *gpus;
  }
  return total;
}

}  // namespace tessera
