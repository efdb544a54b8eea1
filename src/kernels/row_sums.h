// Sums of rows, of an embedding's gradient and of a bias's.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera::kernels {

// Adds rows to rows of a table: the gradient of an embedding, to that of the head which shares its weight.
//
// rows: sparse [V, C], as at::embedding's backward gives it; table: [V, C], contiguous, of the same type. Rows of one
// id are added up first, in their order: the same bits each time. On a GPU in float32, and the host does not wait; on a
// CPU in the rows' own type.
void add_rows(const at::Tensor& table, const at::Tensor& rows);

// Sums over the rows of a matrix: the gradient of a bias. x: [R, C] contiguous; the result, [C] in x's type, is added
// up in float32.
at::Tensor column_sums(const at::Tensor& x);
void column_sums(const at::Tensor& x, const at::Tensor& sums);

}  // namespace tessera::kernels
