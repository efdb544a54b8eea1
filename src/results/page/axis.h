// Axes of plots: which range they show, and round numbers on them. (no torch)
#pragma once

#include <string>
#include <vector>

namespace tessera {

enum class AxisScale { kLinear, kLog2, kLog10 };

struct Tick {
  double value = 0;  // in the data's unit
  std::string label;
};

// What the plot's author says about an axis. Ticks are round in the shown unit: data in MB may be shown in GiB with
// per_unit 1024. `per_unit` is also how a power of ten leaves the labels: a learning rate in 1e-5.
struct Axis {
  std::string label = "", unit = "";  // "learning rate", "1e-5"; the unit may be empty
  AxisScale scale = AxisScale::kLinear;
  double per_unit = 1;
  bool is_whole = false;   // steps, GPUs: no tick between two whole numbers
  bool from_zero = false;  // bars, memory
  bool is_tight = false;   // the range ends where the data end, not at the next tick: good for steps and time
  int most_ticks = 6;
};

struct AxisRange {
  double low = 0, high = 1;
  std::vector<Tick> ticks;
  // 0 at `low`, 1 at `high`.
  double place(double value) const;
  AxisScale scale = AxisScale::kLinear;
};

// The range that shows all finite values (positive ones on a log axis), from tick to tick unless it is tight. No such
// value gives 0 to 1 (1 to 10 or 1 to 2 on a log axis); a single one gets room on both sides.
AxisRange fit_axis(const Axis& axis, const std::vector<double>& values);

// 'axis' with unit and per_unit chosen by the largest value: seconds as s, min or h; MB as MiB or GiB.
Axis time_axis(std::string label, double most_seconds);
Axis memory_axis(std::string label, double most_MB);
// Any other number: below 0.001 and from a million on the unit is a power of ten.
Axis number_axis(std::string label, std::string unit, double largest);

}  // namespace tessera
