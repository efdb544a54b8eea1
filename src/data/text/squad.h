// SQuAD files: questions about passages, with answers.
//
// Three forms are read, recognised by their content: SQuAD's own JSON (v1.1 and v2.0: {"data": [{"paragraphs": ...),
// and what `datasets` writes: JSON lines, with one row {"id", "title", "context", "question", "answers": {"text":
// [...], "answer_start": [...]}} per line, or an array of such rows, bare or as the "data" of an object (the files of
// transformers' run_qa.py). Unneeded keys are ignored. Does not depend on torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct SquadAnswer {
  std::string text;
  std::int64_t start = -1;  // in characters of the context; -1: the file does not say
};

struct SquadRow {
  std::string id, title, question;
  std::shared_ptr<const std::string> context;  // one string for all questions about a passage
  std::vector<SquadAnswer> answers;            // none: the passage does not answer it (v2.0)
};

struct SquadFile {
  std::string form = "SQuAD JSON";  // or "JSON lines", "a JSON array of rows"
  std::string version;              // as in the file; empty if it has none
  std::vector<SquadRow> rows;
};

// Throws UsageError "x.json:12:7: data[3].paragraphs[1].qas[0].answers: expected an array, found a string"; also if the
// file has no question. `origin` is what messages call the text.
SquadFile parse_squad(std::string_view text, const std::string& origin);

// The bytes of such a file. Refuses a folder that `datasets` saved (Arrow files), and explains how to turn it into JSON
// lines.
std::string read_squad_bytes(const std::filesystem::path& path);
// Whether `datasets`' save_to_disk() made this folder.
bool is_arrow_folder(const std::filesystem::path& folder);

}  // namespace tessera
