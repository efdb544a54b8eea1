#include "experiment/table_spec.h"

namespace tessera {
namespace {

class TableReader {
 public:
  explicit TableReader(const JsonReader& file) : file_(file), family_(file.text("family", "")) {}

  std::vector<TableSpec> read() const {
    std::vector<TableSpec> all;
    const auto tables = file_.find("tables");
    if (!tables) return all;
    for (const auto& [name, declared] : tables->members()) {
      TableSpec& table = all.emplace_back();
      table.name = table.title = full_name(name);
      table.file = file_.source().origin;
      table.first_column = "Experiment";
      if (const auto like = declared.find("like")) {
        const auto model = tables->find(like->as_text());
        if (!model || model->has("like")) like->refuse("this is no table of this file that is declared in full");
        take(*model, table);
        table.folders.clear();
      }
      take(declared, table);
      if (table.columns.empty()) declared.refuse("\"columns\" is missing");
      if (table.folders.empty()) table.folders = {table.name};
    }
    return all;
  }

 private:
  // What it says itself, over what is known already.
  void take(const JsonReader& declared, TableSpec& table) const {
    declared.allow_only({"like", "title", "rows", "baseline", "shows_baseline", "first_column", "notes", "questions",
                         "same_batch", "transposed", "lists_hosts", "columns"});
    table.title = declared.text("title", table.title);
    table.first_column = declared.text("first_column", table.first_column);
    table.shows_baseline = declared.boolean("shows_baseline", table.shows_baseline);
    table.is_transposed = declared.boolean("transposed", table.is_transposed);
    table.lists_hosts = declared.boolean("lists_hosts", table.lists_hosts);
    if (const auto baseline = declared.find("baseline")) table.baseline = full_name(baseline->as_text());
    if (const auto questions = declared.find("questions")) table.questions = questions->as_texts();
    if (const auto rows = declared.find("rows")) {
      table.folders.clear();
      for (const std::string& folder : rows->as_texts()) table.folders.push_back(full_name(folder));
    }
    if (const auto columns = declared.find("columns")) {
      table.columns.clear();
      for (const JsonReader& column : columns->items()) table.columns.push_back(read_column(column));
    }
    if (const auto notes = declared.find("notes")) {
      table.notes.clear();
      for (const std::string& note : notes->as_texts()) table.notes.push_back(note_text(note));
    }
    if (const auto same = declared.find("same_batch")) {
      const std::string rule = same->as_text();
      if (rule != "global" && rule != "per_gpu") same->refuse_value("\"global\" or \"per_gpu\"");
      table.has_global_batch = rule == "global";
    }
  }

  static ColumnSpec read_column(const JsonReader& value) {
    if (value.is_string()) return {value.as_text(), std::nullopt, std::nullopt};
    if (!value.is_object()) value.refuse_value(R"(a name, or {"column": name, "label": text, "unit": text})");
    value.allow_only({"column", "label", "unit"});
    const auto text_if_given = [&](const char* key) {
      const auto found = value.find(key);
      return found ? std::optional(found->as_text()) : std::nullopt;
    };
    return {value.text("column"), text_if_given("label"), text_if_given("unit")};
  }

  std::string full_name(const std::string& name) const { return name.empty() ? "" : family_ + "/" + name; }

  std::string note_text(const std::string& note) const {
    const auto shared = file_.find("table_notes");
    const auto text = shared ? shared->find(note) : std::nullopt;
    return text ? text->as_text() : note;
  }

  JsonReader file_;
  std::string family_;
};

}  // namespace

std::vector<TableSpec> read_tables(const JsonReader& file) {
  return TableReader(file).read();
}

std::vector<ModelSize> read_models(const JsonReader& file) {
  std::vector<ModelSize> all;
  const auto models = file.find("models");
  if (!models) return all;
  for (const auto& [name, size] : models->members()) {
    const auto number = [&size = size](const char* key) {
      return static_cast<long long>(size.real(key, 0, 1e18));  // 1.5e9 too
    };
    all.push_back(
        {name, number("num_parameters"), number("hidden_size"), number("num_layers"), size.text("remark", "")});
  }
  return all;
}

}  // namespace tessera
