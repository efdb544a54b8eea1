// Files of rows in all formats: where blocks end changes nothing, and a refusal begins with the file's name.
//
// The first line is the file's ending: "csv\n" or "json\n" and the file's text.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/rows/row_form.h"
#include "data/rows/row_stream.h"

namespace {

struct FuzzedRows {
  std::string text;  // all rows, or what was refused
  bool is_refused = false;
  std::vector<tessera::PlacedRow> rows;
};

FuzzedRows read_fuzzed(const std::filesystem::path& file, const tessera::RowCutting& cutting) {
  FuzzedRows read;
  try {
    const auto stream = tessera::open_rows({file}, cutting);
    while (const auto block = stream->next()) {
      for (tessera::PlacedRow& row : stream->parse(*block)) {
        if (!row.values.is_object() || row.line < block->first_line) std::abort();
        read.text += std::to_string(row.line) + " " + row.values.dump() + "\n";
        read.rows.push_back(std::move(row));
      }
    }
  } catch (const tessera::Error& error) {
    if (!std::string_view(error.what()).starts_with(file.string() + ":")) std::abort();
    read.is_refused = true;
  }
  return read;
}

// Turns of rows, tools and answers are texts from outside, too.
void read_as_training(const std::vector<tessera::PlacedRow>& rows) {
  try {
    const tessera::RowForm form = tessera::RowForm::find(rows);
    for (const tessera::PlacedRow& row : rows) form.read(row.values);
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
}

// One file per process, in memory where the system has such a folder.
std::filesystem::path fuzz_folder() {
  const std::filesystem::path shared = "/dev/shm";
  const auto base = access(shared.c_str(), W_OK) == 0 ? shared : std::filesystem::temp_directory_path();
  return base / ("tessera-rows-fuzz-" + std::to_string(getpid()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return 0;
  const std::string_view ending = text.substr(0, line_end), content = text.substr(line_end + 1);
  bool is_known = false;
  for (const char* known : {"json", "jsonl", "csv", "tsv", "txt", "json.gz", "csv.gz"}) is_known |= ending == known;
  if (!is_known) return 0;

  const std::filesystem::path file = fuzz_folder().string() + "." + std::string(ending);
  std::FILE* stream = std::fopen(file.c_str(), "wb");
  if (stream == nullptr || std::fwrite(content.data(), 1, content.size(), stream) != content.size()) std::abort();
  std::fclose(stream);
  const FuzzedRows whole = read_fuzzed(file, {}), cut = read_fuzzed(file, {5, 3});
  std::filesystem::remove(file);
  if (whole.is_refused != cut.is_refused || (!whole.is_refused && whole.text != cut.text)) std::abort();
  if (!whole.is_refused) read_as_training(whole.rows);
  return 0;
}
