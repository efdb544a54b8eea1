#include "data/text/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json_reader.h"
#include "core/text.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r\n";
constexpr const char *kJsonLines = "JSON lines", *kJsonRows = "a JSON array of rows";

// [{"text": ..., "answer_start": ...}, ...]
std::vector<SquadAnswer> answers_of_list(const JsonReader& list) {
  std::vector<SquadAnswer> answers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader answer = list.at(i);
    answers.push_back(
        {answer.at("text").as_text(), answer.has("answer_start") ? answer.at("answer_start").as_integer(0) : -1});
  }
  return answers;
}

// {"text": [...], "answer_start": [...]}
std::vector<SquadAnswer> answers_of_columns(const JsonReader& columns) {
  std::vector<SquadAnswer> answers;
  const JsonReader texts = columns.at("text");
  for (std::size_t i = 0; i < texts.size(); ++i) answers.push_back({texts.at(i).as_text(), -1});
  if (!columns.has("answer_start")) return answers;
  const JsonReader starts = columns.at("answer_start");
  if (starts.size() != answers.size()) {
    starts.refuse(fmt::format("expected {} numbers, one for each text, found {}", answers.size(), starts.size()));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) answers[i].start = starts.at(i).as_integer(0);
  return answers;
}

std::vector<SquadRow> rows_of_articles(const JsonReader& articles) {
  std::vector<SquadRow> rows;
  for (std::size_t i = 0; i < articles.size(); ++i) {
    const JsonReader article = articles.at(i);
    const JsonReader paragraphs = article.at("paragraphs");
    const std::string title = article.label("title");
    for (std::size_t j = 0; j < paragraphs.size(); ++j) {
      const JsonReader paragraph = paragraphs.at(j);
      const JsonReader questions = paragraph.at("qas");
      const auto context = std::make_shared<const std::string>(paragraph.at("context").as_text());
      for (std::size_t k = 0; k < questions.size(); ++k) {
        const JsonReader question = questions.at(k);
        const JsonReader answers = question.at("answers");
        rows.push_back(
            {question.label("id"), title, question.at("question").as_text(), context, answers_of_list(answers)});
      }
    }
  }
  return rows;
}

// Rows about one passage are consecutive: `before` is the row before this one, which may share its passage.
SquadRow row_of_object(const JsonReader& row, const SquadRow* before) {
  const JsonReader answers = row.at("answers");
  std::string context = row.at("context").as_text();
  const bool is_shared = before != nullptr && *before->context == context;
  return {row.label("id"), row.label("title"), row.at("question").as_text(),
          is_shared ? before->context : std::make_shared<const std::string>(std::move(context)),
          answers.is_object() ? answers_of_columns(answers) : answers_of_list(answers)};
}

void add_row(std::vector<SquadRow>& rows, const JsonReader& row) {
  rows.push_back(row_of_object(row, rows.empty() ? nullptr : &rows.back()));
}

std::vector<SquadRow> rows_of_array(const JsonReader& array) {
  std::vector<SquadRow> rows;
  for (std::size_t i = 0; i < array.size(); ++i) add_row(rows, array.at(i));
  return rows;
}

Json parse_line(std::string_view line, std::size_t num_lines_before, const std::string& origin) {
  try {
    return parse_json(line, origin);
  } catch (const UsageError&) {
    // Parse again after as many line breaks, so that the message has the right line number.
    return parse_json(std::string(num_lines_before, '\n').append(line), origin);
  }
}

std::vector<SquadRow> rows_of_lines(std::string_view text, const std::string& origin) {
  std::vector<SquadRow> rows;
  JsonSource source{nullptr, origin, "", "the row"};
  for (std::size_t begin = 0, num_lines = 0; begin < text.size(); ++num_lines) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(kSpace) == std::string_view::npos) continue;
    const Json value = parse_line(line, num_lines, origin);
    source.root = &value;
    source.text = line;
    source.num_lines_before = num_lines;
    add_row(rows, JsonReader(source));
  }
  return rows;
}

// Every form except JSON lines with more than one line.
void read_whole(const JsonReader& root, SquadFile& file) {
  if (root.is_array()) {
    file.form = kJsonRows;
    file.rows = rows_of_array(root);
  } else if (root.has("context") && !root.has("data")) {
    file.form = kJsonLines;  // of one line
    add_row(file.rows, root);
  } else {
    const JsonReader data = root.at("data");
    if (root.has("version") && root.at("version").is_string()) file.version = root.at("version").as_text();
    if (data.size() > 0 && data.at(std::size_t{0}).has("context")) {
      file.form = kJsonRows;
      file.rows = rows_of_array(data);
    } else {
      file.rows = rows_of_articles(data);
    }
  }
}

// JSON lines: the first non-empty line is a whole object, and more follows it. An object with "data" is a whole file:
// anything after it is a separate mistake.
bool is_json_lines(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  const std::size_t end = text.find('\n', begin);
  if (end == std::string_view::npos || text.find_first_not_of(kSpace, end) == std::string_view::npos) return false;
  const std::string_view line = trim(text.substr(begin, end - begin));
  if (!line.ends_with('}')) return false;
  try {
    return !parse_json(line, "").contains("data");
  } catch (const UsageError&) {
    return false;  // reported when the whole text is parsed
  }
}

}  // namespace

SquadFile parse_squad(std::string_view text, const std::string& origin) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  SquadFile file;
  if (is_json_lines(text)) {
    file.form = kJsonLines;
    file.rows = rows_of_lines(text, origin);
  } else {
    const Json value = parse_json(text, origin);
    const JsonSource source{&value, origin, text};
    read_whole(JsonReader(source), file);
  }
  if (file.rows.empty()) throw UsageError(fmt::format("{}: expected at least one question, found none", origin));
  return file;
}

bool is_arrow_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "dataset_dict.json", ignored) || fs::exists(folder / "dataset_info.json", ignored))
    return true;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->path().extension() == ".arrow") return true;
  }
  return false;
}

std::string read_squad_bytes(const fs::path& path) {
  std::error_code ignored;
  const auto advice = [](const std::string& folder) {
    return fmt::format(
        "Arrow files are not read. Convert them once, in Python: "
        "datasets.load_from_disk(\"{}\")[\"train\"].to_json(\"train.jsonl\"), without [\"train\"] if the folder "
        "holds one split; then use train.jsonl",
        folder);
  };
  if (fs::is_directory(path, ignored)) {
    if (is_arrow_folder(path)) {
      throw UsageError(fmt::format("{} is a folder that `datasets` saved: {}", path.string(), advice(path.string())));
    }
    throw UsageError(fmt::format("{} is a folder: expected a SQuAD file, JSON or JSON lines", path.string()));
  }
  if (path.extension() == ".arrow") {
    throw UsageError(fmt::format("{}: {}", path.string(), advice(path.parent_path().string())));
  }
  if (path.extension() == ".parquet") {
    throw UsageError(
        fmt::format("{}: Parquet files are not read. Convert them once, in Python: datasets.load_dataset(\"parquet\", "
                    "data_files=\"{}\")[\"train\"].to_json(\"train.jsonl\"); then use train.jsonl",
                    path.string(), path.string()));
  }
  std::string bytes = read_file(path);
  if (bytes.starts_with("\x1f\x8b")) {
    throw UsageError(
        fmt::format("{} is compressed with gzip: expected JSON or JSON lines; unpack it first", path.string()));
  }
  return bytes;
}

}  // namespace tessera
