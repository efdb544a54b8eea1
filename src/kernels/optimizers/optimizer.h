// What an optimizer is to the rest of Tessera: names, the states it keeps, one function that updates a slice. (no
// torch)
//
// A new optimizer is one pair of files in this folder, NAME.cc with its descriptor and its CPU loop and NAME.cu with
// its CUDA kernel, its constants in flat_update.h, and one line in optimizers.cc. Settings, help, planner and
// checkpoints take everything else from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/quantity.h"
#include "tessera/optimizer_numbers.h"

namespace tessera {

// Of one update.
struct UpdateNumbers {
  double learning_rate = 0;
  double gradient_scale = 1;  // every gradient is multiplied by it first: clipping, unscaling
  std::int64_t step = 1;      // counted from 1
};

// A tensor that is kept for each parameter, under torch's name: checkpoints call it "<name>.<parameter>".
struct OptimizerState {
  std::string name;
  NumberType type = NumberType::kFloat32;
};

struct OptimizerSlice;  // optimizer_slice.h

struct OptimizerKind {
  std::string name;                // "adamw"
  std::vector<std::string> words;  // of --optim; the first is the one to show
  std::vector<std::string> reads;  // settings that are its own: "adam_beta1"
  std::string help;                // behind its words in --optim's help; may be empty
  std::vector<OptimizerState> (*states)(const OptimizerNumbers& numbers);
  // Throws UsageError "NAME is X: expected ..." where a number is out of its range.
  void (*check)(const OptimizerNumbers& numbers);
  // Each element is updated alone: a shard gets the bits that the whole would get, whatever the number of threads.
  void (*update)(const OptimizerSlice& slice, const OptimizerNumbers& numbers, const UpdateNumbers& update);
};

// All, in the order of help texts.
const std::vector<const OptimizerKind*>& optimizers();
// By its name or one of its words. Throws UsageError naming the words where it is none.
const OptimizerKind& optimizer_of(std::string_view word);
std::vector<std::string> optimizer_words();

// For the descriptors: throws UsageError where `is_right` is false or the value is not finite.
void check_number(const char* name, double value, bool is_right, const char* allowed);

}  // namespace tessera
