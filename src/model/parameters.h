// What models hold: modules of parameters under the names that transformers and torch give them, the initial values of
// a model that is trained from scratch, and a table with two uses.
//
// Parameters are created uninitialised: a model is either loaded or initialised as a whole, and drawing random numbers
// for half a billion weights that a file then overwrites takes seconds.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

class LanguageModel;

// A level of names, without parameters of its own.
class NameLevel : public torch::nn::Module {};

// How a model that is trained from scratch begins.
struct InitialValues {
  double deviation = 0.02;  // of matrices and embeddings, which are normal; biases are 0
  double norm_weight = 1;
  double scale = 1;                   // of the deviation of
  std::vector<std::string> scaled{};  //   the matrices whose names end so
  std::string embedding{};            // the parameter whose
  std::int64_t padding_id = -1;       //   row of this id is 0; -1: none
};

// A parameter's values depend only on the seed and its name, not on device or order, and on the type only through
// rounding. So a rank that holds only some of the units gets the same model.
void initialise(LanguageModel& model, std::uint64_t seed);

// The same for one parameter, by its name in the model.
void initialise_parameter(at::Tensor& parameter, const std::string& name, const InitialValues& values,
                          std::uint64_t seed);

// An embedding whose table is also the head's weight, with one gradient for both uses: by itself, autograd makes a
// table of V x C zeros for the embedding, adds the few rows that the batch used, and then adds that table to the head's
// gradient. For BLOOM-560M that is half a gigabyte in bf16, both in size and, three times, in memory traffic. Here the
// rows are added to the head's gradient in place.
//
// Two names of one table; use both in the same backward pass, or only one of them at all.
struct TiedTable {
  at::Tensor for_rows;  // only for look_up()
  at::Tensor for_head;
};
TiedTable tie(const at::Tensor& table);

// Rows of a table: [T] to [T, C]. `is_tied`: the table is a TiedTable's, and its gradient holds only those rows.
// `padding_id`: the row of this id gets no gradient; -1: none.
at::Tensor look_up(const at::Tensor& table, const at::Tensor& ids, bool is_tied, std::int64_t padding_id = -1);

}  // namespace tessera
