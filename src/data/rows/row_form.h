// What rows of training data are - found from their columns - and each of them in one form, whatever its kind.
//
//   const RowForm form = RowForm::find(first_rows, parse_columns("prompt=question,completion=answer"));
//   log(form.text());                         // "prompt and completion rows (prompt from question, ...)"
//   const TrainingRow row = form.read(json);  // any thread
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "data/rows/row_columns.h"
#include "data/rows/row_stream.h"

namespace tessera {

// In the order in which they are looked for: rows of alpaca, for one, often have a text column, too.
enum class RowKind { kPromptCompletion, kMessages, kShareGpt, kAlpaca, kSquad, kText };

struct TrainingRow {
  std::string text;           // kText alone
  Json prompt, completion;    // both texts, or both arrays of messages: kPromptCompletion, kAlpaca and kSquad
  Json messages;              // an array: kMessages and kShareGpt
  Json tools;                 // an array, or null
  Json chat_template_kwargs;  // an object, or null: what the template gets besides
};

class RowForm {
 public:
  // From the columns that have a value in any of the first rows. Throws UsageError with the columns found where they
  // make no kind, or `columns` names one that is not there.
  static RowForm find(const std::vector<PlacedRow>& first_rows, const ColumnNames& columns = {});

  RowKind kind() const { return kind_; }
  // One line: "alpaca rows (instruction, input, output)".
  const std::string& text() const { return text_; }

  // Throws UsageError with what is wrong, before which the caller puts file and line:
  // "messages[2].role: expected one of ..., found "bot"".
  TrainingRow read(const Json& row) const;

 private:
  RowForm(RowKind kind, std::string text, ColumnNames columns)
      : kind_(kind), text_(std::move(text)), columns_(std::move(columns)) {}

  RowKind kind_;
  std::string text_;
  ColumnNames columns_;
};

// "text; prompt and completion; ...": the kinds with their columns, for messages and help.
const std::string& known_row_kinds();

}  // namespace tessera
