// The types of numbers that a run computes with, for code that does not know torch.
#pragma once

namespace tessera {

enum class NumberType { kFloat32, kBFloat16, kFloat16 };

}  // namespace tessera
