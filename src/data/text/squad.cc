#include "data/text/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/json_mistake.h"
#include "core/text.h"
#include "data/text/json_place.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSpace = " \t\r\n";

// The text that a value came from: a whole file, or one line of it.
struct Source {
  std::string_view text;
  const std::string& origin;
  std::size_t num_lines_before = 0;
};

std::string kind_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  return value.is_array() ? "an array" : "an object";
}

// A value and the way to it. Nodes point at the node that they came from, so that the way is spelt out only for errors.
class Node {
 public:
  Node(const Json& value, const Source& source) : value_(&value), source_(&source) {}

  const Json& value() const { return *value_; }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool has(const char* key) const { return value_->is_object() && value_->find(key) != value_->end(); }

  Node at(const char* key) const {
    if (!value_->is_object()) refuse("an object");
    const auto found = value_->find(key);
    if (found == value_->end()) refuse_missing(key);
    return Node(*found, *this, key, 0);
  }

  std::size_t size() const {
    if (!value_->is_array()) refuse("an array");
    return value_->size();
  }
  Node at(std::size_t index) const { return Node((*value_)[index], *this, nullptr, index); }

  std::string text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get<std::string>();
  }
  std::string text_or_nothing(const char* key) const { return has(key) ? at(key).text() : std::string(); }

  std::int64_t count() const {
    if (!value_->is_number_integer() || value_->get<double>() < 0 || value_->get<double>() > 1e15) {
      refuse("a whole number of at least 0");
    }
    return value_->get<std::int64_t>();
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    refuse_with(fmt::format("expected {}, found {}", expected, kind_of(*value_)));
  }
  [[noreturn]] void refuse_with(const std::string& mistake) const {
    JsonPath path;
    for (const Node* node = this; node->parent_ != nullptr; node = node->parent_) {
      if (node->key_ != nullptr) {
        path.emplace_back(std::string(node->key_));
      } else {
        path.emplace_back(node->index_);
      }
    }
    std::reverse(path.begin(), path.end());
    const internal::TextPosition at = internal::position_of(source_->text, offset_of(source_->text, path));
    const std::string where = path.empty() && source_->num_lines_before > 0 ? "the row" : path_text(path);
    throw UsageError(fmt::format("{}:{}:{}: {}: {}", source_->origin, at.line + source_->num_lines_before, at.column,
                                 where, mistake));
  }

 private:
  // `parent` outlives the node: both stand in one expression or scope.
  Node(const Json& value, const Node& parent, const char* key, std::size_t index)
      : value_(&value), source_(parent.source_), parent_(&parent), key_(key), index_(index) {}

  [[noreturn]] void refuse_missing(const char* key) const {
    std::vector<std::string> keys;
    constexpr std::size_t kMaxShown = 8;
    for (const auto& [name, member] : value_->items()) {
      if (keys.size() < kMaxShown) keys.push_back(printable(name, 40));
    }
    if (value_->size() > kMaxShown) keys.push_back("...");
    refuse_with(
        fmt::format("expected the key \"{}\", found {}", key, keys.empty() ? "no key" : "only " + join(keys, ", ")));
  }

  const Json* value_;
  const Source* source_;
  const Node* parent_ = nullptr;
  const char* key_ = nullptr;
  std::size_t index_ = 0;
};

// [{"text": ..., "answer_start": ...}, ...]
std::vector<SquadAnswer> answers_of_list(const Node& list) {
  std::vector<SquadAnswer> answers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Node answer = list.at(i);
    answers.push_back({answer.at("text").text(), answer.has("answer_start") ? answer.at("answer_start").count() : -1});
  }
  return answers;
}

// {"text": [...], "answer_start": [...]}
std::vector<SquadAnswer> answers_of_columns(const Node& columns) {
  std::vector<SquadAnswer> answers;
  const Node texts = columns.at("text");
  for (std::size_t i = 0; i < texts.size(); ++i) answers.push_back({texts.at(i).text(), -1});
  if (!columns.has("answer_start")) return answers;
  const Node starts = columns.at("answer_start");
  if (starts.size() != answers.size()) {
    starts.refuse_with(fmt::format("expected {} numbers, one for each text, found {}", answers.size(), starts.size()));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) answers[i].start = starts.at(i).count();
  return answers;
}

std::vector<SquadRow> rows_of_squad(const Node& file) {
  std::vector<SquadRow> rows;
  const Node articles = file.at("data");
  for (std::size_t i = 0; i < articles.size(); ++i) {
    const Node article = articles.at(i);
    const Node paragraphs = article.at("paragraphs");
    const std::string title = article.text_or_nothing("title");
    for (std::size_t j = 0; j < paragraphs.size(); ++j) {
      const Node paragraph = paragraphs.at(j);
      const Node questions = paragraph.at("qas");
      const auto context = std::make_shared<const std::string>(paragraph.at("context").text());
      for (std::size_t k = 0; k < questions.size(); ++k) {
        const Node question = questions.at(k);
        const Node answers = question.at("answers");
        rows.push_back(
            {question.text_or_nothing("id"), title, question.at("question").text(), context, answers_of_list(answers)});
      }
    }
  }
  return rows;
}

SquadRow row_of_object(const Node& row) {
  const Node answers = row.at("answers");
  return {row.text_or_nothing("id"), row.text_or_nothing("title"), row.at("question").text(),
          std::make_shared<const std::string>(row.at("context").text()),
          answers.is_object() ? answers_of_columns(answers) : answers_of_list(answers)};
}

std::vector<SquadRow> rows_of_array(const Node& file) {
  std::vector<SquadRow> rows;
  for (std::size_t i = 0; i < file.size(); ++i) rows.push_back(row_of_object(file.at(i)));
  return rows;
}

Json parse_line(std::string_view line, std::size_t num_lines_before, const std::string& origin) {
  try {
    return parse_json(line, origin);
  } catch (const UsageError&) {
    // Once more behind as many line breaks, so that the message has the right line.
    return parse_json(std::string(num_lines_before, '\n').append(line), origin);
  }
}

std::vector<SquadRow> rows_of_lines(std::string_view text, const std::string& origin) {
  std::vector<SquadRow> rows;
  std::shared_ptr<const std::string> last_context;
  for (std::size_t begin = 0, num_lines = 0; begin < text.size(); ++num_lines) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(kSpace) == std::string_view::npos) continue;
    const Json value = parse_line(line, num_lines, origin);
    const Source source{line, origin, num_lines};
    SquadRow row = row_of_object(Node(value, source));
    // Rows about one passage follow each other.
    if (last_context != nullptr && *last_context == *row.context) row.context = last_context;
    last_context = row.context;
    rows.push_back(std::move(row));
  }
  return rows;
}

// JSON lines: the first line that is not empty is a whole object, and more follows it.
bool is_json_lines(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  const std::size_t end = text.find('\n', begin);
  if (end == std::string_view::npos || text.find_first_not_of(kSpace, end) == std::string_view::npos) return false;
  const std::string_view line = trim(text.substr(begin, end - begin));
  return line.ends_with('}') && Json::accept(line);
}

}  // namespace

const char* name_of(SquadForm form) {
  switch (form) {
    case SquadForm::kJsonLines:
      return "JSON lines";
    case SquadForm::kJsonRows:
      return "a JSON array of rows";
    default:
      return "SQuAD JSON";
  }
}

SquadFile parse_squad(std::string_view text, const std::string& origin) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  SquadFile file;
  if (is_json_lines(text)) {
    file.form = SquadForm::kJsonLines;
    file.rows = rows_of_lines(text, origin);
  } else {
    const Json value = parse_json(text, origin);
    const Source source{text, origin};
    const Node root(value, source);
    if (root.is_array()) {
      file.form = SquadForm::kJsonRows;
      file.rows = rows_of_array(root);
    } else if (root.has("context") && !root.has("data")) {
      file.form = SquadForm::kJsonLines;  // of one line
      file.rows.push_back(row_of_object(root));
    } else {
      file.rows = rows_of_squad(root);
      if (root.has("version") && root.at("version").value().is_string()) file.version = root.at("version").text();
    }
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
        "datasets.load_from_disk(\"{}\")[\"train\"].to_json(\"train.jsonl\"), without [\"train\"] where the folder "
        "holds one split; then give train.jsonl",
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
                    "data_files=\"{}\")[\"train\"].to_json(\"train.jsonl\"); then give train.jsonl",
                    path.string(), path.string()));
  }
  return read_file(path);
}

SquadFile read_squad(const fs::path& path) {
  return parse_squad(read_squad_bytes(path), path.string());
}

}  // namespace tessera
