// The scanners of kTekkenExpression and kGpt4oExpression.
#pragma once

#include <string_view>
#include <vector>

#include "data/tokenizer/pattern.h"

namespace tessera::internal {

void find_tekken_pieces(std::string_view text, std::vector<Match>& matches);
void find_gpt4o_pieces(std::string_view text, std::vector<Match>& matches);

}  // namespace tessera::internal
