// SQuAD files: questions about passages, with answers.
//
// Three forms are read, told apart by what is in them: SQuAD's own JSON (v1.1 and v2.0: {"data": [{"paragraphs": ...),
// and what `datasets` writes: JSON lines, one row {"id", "title", "context", "question", "answers": {"text": [...],
// "answer_start": [...]}} a line, or an array of such rows, bare or as the "data" of an object (the files of
// transformers' run_qa.py). Keys that are not needed are passed over. Knows no torch.
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

enum class SquadForm { kSquadJson, kJsonLines, kJsonRows };

struct SquadFile {
  SquadForm form = SquadForm::kSquadJson;
  std::string version;  // as the file says; empty where it does not
  std::vector<SquadRow> rows;
};

const char* name_of(SquadForm form);

// Throws UsageError "x.json:12:7: data[3].paragraphs[1].qas[0].answers: expected an array, found a string"; a file
// without a single question is refused too. `origin` is what messages call the text.
SquadFile parse_squad(std::string_view text, const std::string& origin);

// A folder that `datasets` saved (Arrow files) is refused, with how to turn it into JSON lines.
SquadFile read_squad(const std::filesystem::path& path);
// The bytes of such a file, for those who want to name them before they parse them. Refuses what read_squad() refuses.
std::string read_squad_bytes(const std::filesystem::path& path);
// Whether `datasets`' save_to_disk() made this folder.
bool is_arrow_folder(const std::filesystem::path& folder);

}  // namespace tessera
