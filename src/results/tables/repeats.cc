#include "results/tables/repeats.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "record/figures.h"

namespace tessera {
namespace {

double median_of(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Texts without numbers, and texts that are all the same.
std::string common_text(const std::vector<Found>& repeats) {
  std::vector<std::string> texts;
  for (const Found& each : repeats) {
    if (!each.text.empty() && std::find(texts.begin(), texts.end(), each.text) == texts.end()) {
      texts.push_back(each.text);
    }
  }
  const bool has_values =
      std::any_of(repeats.begin(), repeats.end(), [](const Found& each) { return each.value.has_value(); });
  return has_values && texts.size() != 1 ? "" : join(texts, ", ");
}

}  // namespace

Found found_of_repeats(const std::vector<Found>& repeats, int digits) {
  if (repeats.size() == 1) return repeats.front();
  Found found;
  std::vector<double> values;
  for (const Found& each : repeats) {
    if (each.value) values.push_back(*each.value);
    if (found.remark.empty()) found.remark = each.remark;
    if (found.reason.empty()) found.reason = each.reason;
  }
  found.text = common_text(repeats);
  if (values.empty()) return found;
  std::sort(values.begin(), values.end());
  found.value = median_of(values);
  const auto rounded = [&](double value) { return fmt::format("{:.{}f}", value, digits); };
  if (found.text.empty() && rounded(values.front()) != rounded(values.back())) {
    found.text = fmt::format("{} ({} to {})", rounded(*found.value), rounded(values.front()), rounded(values.back()));
  }
  if (values.size() < repeats.size()) {
    found.remark = fmt::format("of {} of {} repeats: {}", values.size(), repeats.size(), found.reason);
  }
  return found;
}

std::size_t median_repeat(const std::vector<RunRecord>& repeats) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (runtime_seconds(repeats[i])) order.push_back(i);
  }
  if (order.empty()) return 0;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return *runtime_seconds(repeats[a]) < *runtime_seconds(repeats[b]);
  });
  return order[(order.size() - 1) / 2];
}

}  // namespace tessera
