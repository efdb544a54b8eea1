// An embedding whose table is also the head's weight, with one gradient for both uses.
//
// By itself, autograd makes a table of V x C zeros for the embedding, adds the few rows that the batch used, and then
// adds that table to the head's gradient. For BLOOM-560M that is half a gigabyte in bf16, both in size and, three
// times, in memory traffic. Here the rows are added to the head's gradient in place.
#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

// Two names of one table; use both in the same backward pass, or only one of them at all.
struct TiedTable {
  at::Tensor for_rows;  // only for look_up()
  at::Tensor for_head;
};
TiedTable tie(const at::Tensor& table);

// Rows of a table: [T] to [T, C]. `is_tied`: the table is a TiedTable's, and its gradient holds only those rows.
at::Tensor look_up(const at::Tensor& table, const at::Tensor& ids, bool is_tied);

}  // namespace tessera
