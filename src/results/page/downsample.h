// Fewer points that draw the same curve. (no torch)
#pragma once

#include <cstddef>
#include <vector>

namespace tessera {

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

// At most about `most` points of those given, in their order: the first, the last, and of every stretch the lowest and
// the highest, so that no spike is lost. Points whose y is not finite mark a gap; a gap stays one point.
std::vector<Point> downsampled(const std::vector<Point>& points, std::size_t most);

}  // namespace tessera
