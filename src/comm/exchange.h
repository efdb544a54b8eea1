// Small things that ranks tell each other outside of training: numbers, texts, and how rank 0's work ended.
//
// All are collective over the world, and every rank gets the same bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/world.h"

namespace tessera {

// Added in rank order; every rank gives as many numbers.
std::vector<double> sum_over_ranks(World& world, const std::vector<double>& own);
// By rank; every rank gives as many numbers.
std::vector<std::vector<double>> gather_numbers(World& world, const std::vector<double>& own);
// By rank; each text is cut to 255 bytes.
std::vector<std::string> gather_texts(World& world, const std::string& own);
// By rank, of any length.
std::vector<std::string> gather_long_texts(World& world, const std::string& own, const char* what);

// Rank 0's. `what` names it for the watchdog's message.
std::vector<double> numbers_of_first_rank(World& world, const std::vector<double>& own, const char* what);
std::string text_of_first_rank(World& world, const std::string& own, const char* what);

// Rank 0 runs `work` (it alone touches files). Where that throws, every rank throws the same message with the same exit
// status.
void on_first_rank(World& world, const std::function<void()>& work);
// Every rank runs `work`, which is not collective. Where it throws on any, every rank throws the message of the first
// of these, with its exit status.
void on_every_rank(World& world, const std::function<void()>& work);

}  // namespace tessera
