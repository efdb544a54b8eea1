#include "parallel/unit_error.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "comm/failure.h"
#include "core/text.h"

namespace tessera {

void rethrow_in_unit(int rank, std::string_view phase, std::string_view unit) {
  const std::string where = fmt::format("rank {}, {} of unit {}", rank, phase, unit);
  try {
    throw;
  } catch (const UnitError&) {
    throw;
  } catch (const Error& error) {
    throw UnitError(fmt::format("{}: {}", where, error.what()), error.status());
  } catch (const std::exception& error) {
    throw UnitError(fmt::format("{}: {}", where, message_of(error)));  // without libtorch's backtrace
  } catch (...) {
    throw UnitError(fmt::format("{}: an exception that is not a std::exception", where));
  }
}

std::vector<GradientFault> find_gradient_faults(Group* all, at::Device device,
                                                const std::vector<std::string>& unit_names,
                                                const std::vector<bool>& own_is_finite) {
  const auto num_units = static_cast<std::int64_t>(unit_names.size());
  at::Tensor flags = at::empty({1, num_units}, at::kByte);  // [ranks, units]
  for (std::int64_t unit = 0; unit < num_units; ++unit) {
    flags[0][unit] = own_is_finite[static_cast<std::size_t>(unit)] ? 0 : 1;
  }
  if (all != nullptr) {
    const at::Tensor own = flags[0].to(device);
    at::Tensor of_all = at::empty({all->size(), num_units}, own.options());
    all->all_gather(of_all, own, "gradients that are not finite")->wait();
    flags = of_all.cpu();
  }
  std::vector<GradientFault> faults;
  const auto is_bad = flags.accessor<std::uint8_t, 2>();
  for (int rank = 0; rank < flags.size(0); ++rank) {
    // Backward visits the units from last to first; the root, last in the list, is complete at its end.
    for (std::int64_t unit = num_units - 2; unit >= 0; --unit) {
      if (is_bad[rank][unit] != 0) faults.push_back({rank, unit_names[static_cast<std::size_t>(unit)]});
    }
    if (num_units > 0 && is_bad[rank][num_units - 1] != 0) faults.push_back({rank, unit_names.back()});
  }
  return faults;
}

std::string describe(const std::vector<GradientFault>& faults) {
  if (faults.empty()) {
    return "the gradient is not finite: each rank's own is finite, but their sum overflows its type";
  }
  std::vector<std::string> of_ranks;
  for (std::size_t i = 0; i < faults.size();) {
    std::size_t end = i;
    while (end < faults.size() && faults[end].rank == faults[i].rank) ++end;
    const std::size_t num_others = end - i - 1;
    std::string text = fmt::format("rank {} in unit {}", faults[i].rank, faults[i].unit);
    if (num_others > 0) text += fmt::format(" and {} other{}", num_others, num_others == 1 ? "" : "s");
    of_ranks.push_back(std::move(text));
    i = end;
  }
  return "the gradient is not finite: " + join(of_ranks, ", ");
}

}  // namespace tessera
