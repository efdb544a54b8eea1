#include "data/rows/row_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "data/rows/row_messages.h"

namespace tessera {

namespace {

struct RowKindTraits {
  RowKind kind;
  const char* name;
  std::vector<std::string> required, optional;
};

// In the order of the enumeration.
const std::vector<RowKindTraits>& row_kinds() {
  static const std::vector<RowKindTraits> kinds = {
      {RowKind::kPromptCompletion,
       "prompt and completion",
       {"prompt", "completion"},
       {"tools", "chat_template_kwargs"}},
      {RowKind::kMessages, "messages", {"messages"}, {"system", "tools", "chat_template_kwargs"}},
      {RowKind::kShareGpt, "ShareGPT", {"conversations"}, {"system", "tools", "chat_template_kwargs"}},
      {RowKind::kAlpaca,
       "alpaca",
       {"instruction", "output"},
       {"input", "history", "system", "tools", "chat_template_kwargs"}},
      {RowKind::kSquad, "SQuAD", {"question", "context", "answers"}, {"chat_template_kwargs"}},
      {RowKind::kText, "text", {"text"}, {}}};
  return kinds;
}

// The columns that have a value in any of the rows, in the file's order.
std::vector<std::string> columns_of(const std::vector<PlacedRow>& rows) {
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (const PlacedRow& row : rows) {
    for (const auto& [key, value] : row.values.items()) {
      if (!value.is_null() && seen.insert(key).second) columns.push_back(key);
    }
  }
  return columns;
}

bool contains_name(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void check_mapped(const ColumnNames& mapped, const std::vector<std::string>& found) {
  for (const auto& [name, column] : mapped) {
    if (contains_name(found, column)) continue;
    throw UsageError(fmt::format("--columns {0}={1}: there is no column {1} in the first rows{2}; they have {3}", name,
                                 printable(column), did_you_mean(column, found), listed(found)));
  }
}

// By Tessera's names. A column that is mapped to another name no longer counts under its own.
std::set<std::string> known_names(const ColumnNames& mapped, const std::vector<std::string>& found) {
  std::set<std::string> names(found.begin(), found.end());
  for (const auto& [name, column] : mapped) names.erase(column);
  for (const auto& [name, column] : mapped) names.insert(name);
  return names;
}

bool fits(const RowKindTraits& kind, const std::set<std::string>& names, const ColumnNames& mapped) {
  return std::ranges::all_of(kind.required, [&](const std::string& name) { return names.contains(name); }) &&
         std::ranges::all_of(mapped, [&](const auto& pair) {
           return contains_name(kind.required, pair.first) || contains_name(kind.optional, pair.first);
         });
}

// "alpaca rows (instruction, input from context, output)"
std::string text_of_kind(const RowKindTraits& kind, const std::set<std::string>& names, const ColumnNames& mapped,
                         const std::vector<std::string>& found) {
  std::vector<std::pair<std::ptrdiff_t, std::string>> placed;  // in the file's order
  for (const auto* list : {&kind.required, &kind.optional}) {
    for (const std::string& name : *list) {
      if (!names.contains(name)) continue;
      const auto own = mapped.find(name);
      const std::string& column = own == mapped.end() ? name : own->second;
      const auto place = std::ranges::find(found, column) - found.begin();
      placed.emplace_back(place, column == name ? name : fmt::format("{} from {}", name, printable(column, 40)));
    }
  }
  std::ranges::sort(placed);
  return fmt::format("{} rows ({})", kind.name,
                     join(texts_of(placed, [](const auto& each) { return each.second; }), ", "));
}

// "": rows of a kind that this program does not train on.
std::string advice_on_kind(const std::set<std::string>& names) {
  if (names.contains("chosen") && names.contains("rejected")) {
    return "these are preference rows (chosen, rejected), and training on preferences (DPO) is not supported; to train "
           "on the preferred answers: --columns completion=chosen beside a prompt, or messages=chosen";
  }
  if (names.contains("input_ids")) {
    return "these rows are tokenised already; give the rows that they were made from";
  }
  return "name them by --columns, such as prompt=question,completion=answer";
}

// A row that has no column of its kind, and all of another one: the file has rows of several kinds.
void refuse_other_kind(RowKind kind, const RowValues& values) {
  const auto has = [&](const std::string& column) { return values.find(column) != nullptr; };
  const auto is_whole = [&](const RowKindTraits& each) { return std::ranges::all_of(each.required, has); };
  const RowKindTraits& expected = row_kinds().at(static_cast<std::size_t>(kind));
  if (std::ranges::any_of(expected.required, has)) return;
  const auto other = std::ranges::find_if(row_kinds(), is_whole);
  if (other == row_kinds().end()) return;
  throw UsageError(fmt::format("it is one of the {} rows ({}) among {} rows ({}): write each kind to files of its own",
                               other->name, join(other->required, ", "), expected.name, join(expected.required, ", ")));
}

Json completion_message(std::string text) {
  return Json::array({message("assistant", std::move(text))});
}

// "instruction\ninput", without the line end where one of them is empty.
std::string request_of(const RowValues& values) {
  const std::string instruction = values.text_or_nothing("instruction"), input = values.text_or_nothing("input");
  if (instruction.empty() && input.empty()) {
    values.at("instruction");  // which may be missing
    values.refuse("instruction", "expected a text, found an empty one");
  }
  return instruction + (instruction.empty() || input.empty() ? "" : "\n") + input;
}

// [["question", "answer"], ...]: turns before the row's own.
void add_history(Json& messages, const RowValues& values) {
  const Json* history = values.find("history");
  if (history == nullptr) return;
  if (!history->is_array()) values.refuse("history", "expected a list of turns, found " + shown(*history));
  for (const Json& turn : *history) {
    if (!turn.is_array() || turn.size() != 2 || !turn[0].is_string() || !turn[1].is_string()) {
      values.refuse("history",
                    "expected turns such as [\"question\", \"answer\"], found " + printable(json_text(turn), 60));
    }
    messages.push_back(message("user", turn[0].get<std::string>()));
    messages.push_back(message("assistant", turn[1].get<std::string>()));
  }
}

void read_alpaca(TrainingRow& row, const RowValues& values) {
  row.prompt = Json::array();
  add_system_text(row.prompt, values.text_or_nothing("system"));
  add_history(row.prompt, values);
  row.prompt.push_back(message("user", request_of(values)));
  row.completion = completion_message(values.text("output"));  // an empty one trains the end of the turn
}

void read_prompt_completion(TrainingRow& row, const RowValues& values) {
  const Json &prompt = values.at("prompt"), &completion = values.at("completion");
  if (prompt.is_string() && completion.is_string()) {
    row.prompt = prompt;
    row.completion = completion;
    return;
  }
  if (!prompt.is_string() && !prompt.is_array()) {
    values.refuse("prompt", "expected a text or a list of messages, found " + shown(prompt));
  }
  if (prompt.is_string() || completion.is_string()) {
    values.refuse("completion", fmt::format("expected {0}, as {1} is {0}, found {2}",
                                            prompt.is_string() ? "a text" : "a list of messages", values.name("prompt"),
                                            shown(completion)));
  }
  row.prompt = read_messages(prompt, values.name("prompt"));
  row.completion = read_messages(completion, values.name("completion"));
}

// {"text": ["..."], ...}, or [{"text": "..."}]
std::string first_answer(const RowValues& values) {
  const Json& answers = values.at("answers");
  const Json texts = answers.is_object() ? answers.value("text", Json()) : answers;
  if (!texts.is_array()) values.refuse("answers", "expected a list of answers, found " + shown(answers));
  if (texts.empty()) values.refuse("answers", "expected an answer, found none");
  const Json first = texts.front().is_object() ? texts.front().value("text", Json()) : texts.front();
  if (!first.is_string()) values.refuse("answers", "expected a text as the first answer, found " + shown(first));
  if (first.get_ref<const std::string&>().empty()) values.refuse("answers", "the first answer is empty");
  return first.get<std::string>();
}

void read_squad_row(TrainingRow& row, const RowValues& values) {
  const std::string request = values.text("context") + "\n\n" + values.text("question");
  row.prompt = Json::array({message("user", request)});
  row.completion = completion_message(first_answer(values));
}

void read_chat(TrainingRow& row, const RowValues& values, const char* column) {
  row.messages = read_messages(values.at(column), values.name(column));
  add_system_text(row.messages, values.text_or_nothing("system"));
}

}  // namespace

RowForm RowForm::find(const std::vector<PlacedRow>& first_rows, const ColumnNames& columns) {
  const std::vector<std::string> found = columns_of(first_rows);
  if (found.empty()) throw UsageError("there is no row with a value");
  check_mapped(columns, found);
  const std::set<std::string> names = known_names(columns, found);
  for (const RowKindTraits& kind : row_kinds()) {
    const bool is_preference = names.contains("chosen") && names.contains("rejected") && columns.empty();
    if (fits(kind, names, columns) && !is_preference) {
      return {kind.kind, text_of_kind(kind, names, columns, found), columns};
    }
  }
  throw UsageError(fmt::format("the columns {} are none of the kinds of rows there are ({}); {}", listed(found),
                               known_row_kinds(), advice_on_kind(names)));
}

TrainingRow RowForm::read(const Json& json) const {
  const RowValues values(json, columns_);
  refuse_other_kind(kind_, values);
  TrainingRow row;
  switch (kind_) {
    case RowKind::kText:
      row.text = values.text("text");
      return row;
    case RowKind::kPromptCompletion:
      read_prompt_completion(row, values);
      break;
    case RowKind::kAlpaca:
      read_alpaca(row, values);
      break;
    case RowKind::kShareGpt:
      read_chat(row, values, "conversations");
      break;
    case RowKind::kMessages:
      read_chat(row, values, "messages");
      break;
    case RowKind::kSquad:
      read_squad_row(row, values);
      break;
  }
  if (const Json* tools = values.find("tools")) row.tools = read_tools(*tools, values.name("tools"));
  if (const Json* kwargs = values.find("chat_template_kwargs")) {
    if (!kwargs->is_object()) values.refuse("chat_template_kwargs", "expected an object, found " + shown(*kwargs));
    row.chat_template_kwargs = *kwargs;
  }
  return row;
}

const std::string& known_row_kinds() {
  static const std::string kinds = join(
      texts_of(row_kinds(),
               [](const RowKindTraits& kind) { return fmt::format("{}: {}", kind.name, join(kind.required, ", ")); }),
      "; ");
  return kinds;
}

}  // namespace tessera
