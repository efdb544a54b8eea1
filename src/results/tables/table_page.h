// A table and the answers to its questions as an HTML page of their own. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/questions.h"
#include "results/tables/table.h"

namespace tessera {

std::string table_page(const Table& table, const std::vector<Answer>& answers);

}  // namespace tessera
