#include "results/page/downsample.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

void add_point(std::vector<Point>& kept, const Point& point) {
  const bool is_gap = !std::isfinite(point.y);
  if (is_gap && !kept.empty() && !std::isfinite(kept.back().y)) return;
  kept.push_back(point);
}

// The lowest and the highest of [begin, end), and a gap where there is one, in their order.
void add_extremes(std::vector<Point>& kept, const std::vector<Point>& points, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> chosen;
  std::size_t low = end, high = end, gap = end;
  for (std::size_t i = begin; i < end; ++i) {
    const double y = points[i].y;
    if (!std::isfinite(y)) {
      gap = i;
      continue;
    }
    if (low == end || y < points[low].y) low = i;
    if (high == end || y > points[high].y) high = i;
  }
  for (const std::size_t i : {low, high, gap}) {
    if (i != end && std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const std::size_t i : chosen) add_point(kept, points[i]);
}

}  // namespace

std::vector<Point> downsampled(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> kept;
  if (points.size() <= std::max<std::size_t>(most, 4)) {
    for (const Point& point : points) add_point(kept, point);
    return kept;
  }
  const std::size_t num_stretches = std::max<std::size_t>(1, (most - 2) / 2), num_inner = points.size() - 2;
  add_point(kept, points.front());
  for (std::size_t i = 0; i < num_stretches; ++i) {
    add_extremes(kept, points, 1 + i * num_inner / num_stretches, 1 + (i + 1) * num_inner / num_stretches);
  }
  add_point(kept, points.back());
  return kept;
}

}  // namespace tessera
