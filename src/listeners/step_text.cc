#include "listeners/step_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "parallel/step_clock.h"

namespace tessera {
namespace {

constexpr double kSlow = 0.05;

// Time that a rank spends waiting for others is not its own.
bool is_waiting(const std::string& part) {
  return part == step_part_names()[static_cast<std::size_t>(StepPart::kCommunication)];
}

// 0: the rank has no such part.
double mean_ms_of(const RankRecord& rank, const std::string& part) {
  const auto found =
      std::find_if(rank.parts.begin(), rank.parts.end(), [&](const PartTime& each) { return each.name == part; });
  return found == rank.parts.end() ? 0 : found->mean_ms;
}

double own_ms(const RankRecord& rank) {
  double sum = 0;
  for (const PartTime& part : rank.parts) {
    if (!is_waiting(part.name)) sum += part.mean_ms;
  }
  return sum;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The part that takes longest in excess of its median.
std::string slowest_part(const std::vector<RankRecord>& ranks, const RankRecord& slow) {
  std::string name;
  double most = 0;
  for (const PartTime& part : slow.parts) {
    if (is_waiting(part.name)) continue;
    std::vector<double> of_ranks;
    for (const RankRecord& rank : ranks) of_ranks.push_back(mean_ms_of(rank, part.name));
    const double excess = part.mean_ms - median(std::move(of_ranks));
    if (excess <= most) continue;
    most = excess;
    name = part.name;
  }
  return name;
}

}  // namespace

std::string step_text(const std::vector<RankRecord>& ranks) {
  if (ranks.empty() || ranks.front().parts.empty()) return {};
  std::vector<PartTime> parts = ranks.front().parts;
  double whole = 0;
  for (PartTime& part : parts) {
    part.mean_ms = 0;
    for (const RankRecord& rank : ranks)
      part.mean_ms += mean_ms_of(rank, part.name) / static_cast<double>(ranks.size());
    whole += part.mean_ms;
  }
  if (whole <= 0) return {};
  std::vector<std::string> texts;
  for (const PartTime& part : parts) {
    const double percent = 100 * part.mean_ms / whole;
    if (percent >= 0.05) texts.push_back(fmt::format("{} {:.1f} %", part.name, percent));
  }
  return fmt::format("{} = {}", whole < 1000 ? fmt::format("{:.1f} ms", whole) : fmt::format("{:.2f} s", whole / 1000),
                     join(texts, ", "));
}

std::optional<std::string> slow_rank_text(const std::vector<RankRecord>& ranks) {
  if (ranks.size() < 2 || ranks.front().parts.empty()) return std::nullopt;
  std::vector<double> own;
  for (const RankRecord& rank : ranks) own.push_back(own_ms(rank));
  const auto slow = std::max_element(own.begin(), own.end());
  const double middle = median(own);
  if (middle <= 0 || *slow < (1 + kSlow) * middle) return std::nullopt;
  const RankRecord& rank = ranks[static_cast<std::size_t>(slow - own.begin())];
  return fmt::format("rank {} is {:.0f} % slower than the median ({})", rank.rank, 100 * (*slow / middle - 1),
                     slowest_part(ranks, rank));
}

}  // namespace tessera
