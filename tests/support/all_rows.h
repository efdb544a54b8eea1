// All rows of files, for tests of their readers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/rows/row_stream.h"

namespace tessera {

// Of one test: the text is written to a file of this name, and its rows are read.
struct RowsOfText {
  std::filesystem::path folder;

  std::vector<PlacedRow> operator()(const std::string& name, const std::string& text,
                                    const RowCutting& cutting = {}) const {
    write_file_atomically(folder / name, text);
    return of({folder / name}, cutting);
  }

  static std::vector<PlacedRow> of(const std::vector<std::filesystem::path>& files, const RowCutting& cutting = {}) {
    const auto stream = open_rows(files, cutting);
    std::vector<PlacedRow> rows;
    while (const auto block = stream->next()) {
      for (PlacedRow& row : stream->parse(*block)) rows.push_back(std::move(row));
    }
    return rows;
  }

  // "1 {...}\n2 {...}\n": lines and values.
  static std::string shown(const std::vector<PlacedRow>& rows) {
    std::string text;
    for (const PlacedRow& row : rows) text += std::to_string(row.line) + " " + row.values.dump() + "\n";
    return text;
  }
};

}  // namespace tessera
