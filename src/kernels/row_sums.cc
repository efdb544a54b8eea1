#include "kernels/row_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sum.h>

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {

void add_rows(const at::Tensor& table, const at::Tensor& rows) {
  constexpr const char* kName = "add_rows";
  check_float_type(table, kName, "table");
  check(rows.is_sparse() && rows.sizes() == table.sizes() && rows.scalar_type() == table.scalar_type() &&
            rows.sparse_dim() == 1,
        kName, fmt::format("sparse rows of {} in its type but got {}", shape_text(table), shape_text(rows)));
  if (!table.is_cuda()) {
    table.add_(rows.coalesce());
    return;
  }
  check(table.is_contiguous(), kName, "a contiguous table");
  if (rows._nnz() == 0) return;
  // Not coalesce(): it asks the device how many ids there are.
  const auto [ids, order] = at::sort(rows._indices()[0], /*stable=*/true, /*dim=*/0, /*descending=*/false);
  cuda_kernels().add_rows(table, ids, order, rows._values().contiguous());
}

at::Tensor column_sums(const at::Tensor& x) {
  auto sums = at::empty({x.size(1)}, x.options());
  column_sums(x, sums);
  return sums;
}

void column_sums(const at::Tensor& x, const at::Tensor& sums) {
  if (x.is_cuda() && x.numel() > 0 && x.is_contiguous()) return cuda_kernels().column_sums(x, sums);
  at::Tensor out = sums;
  at::sum_out(out, x, {0});
}

}  // namespace tessera::kernels
