// A table and the answers to its questions as an HTML page of their own. (no torch)
#pragma once

#include <string>
#include <vector>

#include "report/questions.h"
#include "report/tables/table.h"

namespace tessera {

std::string table_page(const Table& table, const std::vector<Answer>& answers);

}  // namespace tessera
