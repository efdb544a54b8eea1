#include "experiment/table_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "experiment/values.h"

namespace tessera {
namespace {

class TableReader {
 public:
  TableReader(const Json& root, const std::string& origin) : root_(root), origin_(origin) {
    family_ = root.value("family", Json("")).is_string() ? root.value("family", "") : "";
  }

  std::vector<TableSpec> read() const {
    std::vector<TableSpec> tables;
    for (const auto& [name, declared] : tables_json().items()) tables.push_back(read_table(name, declared));
    return tables;
  }

 private:
  [[noreturn]] void refuse(const std::string& table, const std::string& mistake) const {
    throw UsageError(fmt::format("{}: table {}: {}", origin_, printable(table, 60), mistake));
  }

  const Json& tables_json() const {
    static const Json none = Json::object();
    const auto tables = root_.find("tables");
    if (tables == root_.end()) return none;
    if (!tables->is_object()) refuse_file(origin_, "\"tables\": expected an object: { ... }");
    return *tables;
  }

  // What it says itself, over what the table says that it is like.
  Json with_inherited(const std::string& name, const Json& declared) const {
    if (!declared.is_object()) refuse(name, "expected an object: { ... }");
    if (!declared.contains("like")) return declared;
    const std::string model = text(name, "like", declared.at("like"));
    if (!tables_json().contains(model) || tables_json().at(model).contains("like")) {
      refuse(name, fmt::format("\"like\": '{}' is no table of this file that is declared in full", model));
    }
    Json whole = tables_json().at(model);
    whole.erase("rows");
    whole.update(declared);
    whole.erase("like");
    return whole;
  }

  TableSpec read_table(const std::string& name, const Json& declared) const {
    TableSpec table;
    table.name = table.title = full_name(name);
    table.file = origin_;
    table.first_column = "Experiment";
    const Json whole = with_inherited(name, declared);
    for (const auto& [key, value] : whole.items()) take(name, key, value, table);
    if (table.columns.empty()) refuse(name, "\"columns\" is missing");
    if (table.folders.empty()) table.folders = {table.name};
    return table;
  }

  void take(const std::string& name, const std::string& key, const Json& value, TableSpec& table) const {
    if (key == "title") {
      table.title = text(name, key, value);
    } else if (key == "first_column") {
      table.first_column = text(name, key, value);
    } else if (key == "baseline") {
      table.baseline = full_name(text(name, key, value));
    } else if (key == "rows") {
      for (const Json& folder : list(name, key, value)) table.folders.push_back(full_name(text(name, key, folder)));
    } else if (key == "columns") {
      for (const Json& column : list(name, key, value)) table.columns.push_back(read_column(name, column));
    } else if (key == "notes") {
      for (const Json& note : list(name, key, value)) table.notes.push_back(note_text(text(name, key, note)));
    } else if (key == "questions") {
      for (const Json& question : list(name, key, value)) table.questions.push_back(text(name, key, question));
    } else if (key == "same_batch") {
      const std::string rule = text(name, key, value);
      if (rule != "global" && rule != "per_gpu") refuse(name, "\"same_batch\": expected \"global\" or \"per_gpu\"");
      table.has_global_batch = rule == "global";
    } else if (key == "shows_baseline") {
      table.shows_baseline = is_true(name, key, value);
    } else if (key == "transposed") {
      table.is_transposed = is_true(name, key, value);
    } else if (key == "lists_hosts") {
      table.lists_hosts = is_true(name, key, value);
    } else {
      const std::vector<std::string> known = {"like",           "title",        "rows",        "baseline",
                                              "shows_baseline", "first_column", "notes",       "questions",
                                              "same_batch",     "transposed",   "lists_hosts", "columns"};
      const auto meant = nearest(key, known);
      refuse(name, fmt::format("unknown key \"{}\"{}; known: {}", printable(key, 40),
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(known, ", ")));
    }
  }

  ColumnSpec read_column(const std::string& table, const Json& value) const {
    if (value.is_string()) return {value.get<std::string>(), std::nullopt, std::nullopt};
    const char* form = "\"columns\": expected names, or {\"column\": name, \"label\": text, \"unit\": text}";
    if (!value.is_object() || !value.contains("column")) refuse(table, form);
    ColumnSpec column;
    for (const auto& [key, each] : value.items()) {
      if (key == "column") {
        column.name = text(table, key, each);
      } else if (key == "label") {
        column.label = text(table, key, each);
      } else if (key == "unit") {
        column.unit = text(table, key, each);
      } else {
        refuse(table, form);
      }
    }
    return column;
  }

  std::string full_name(const std::string& name) const { return name.empty() ? "" : family_ + "/" + name; }

  std::string note_text(const std::string& note) const {
    const auto shared = root_.find("table_notes");
    const bool is_shared = shared != root_.end() && shared->is_object() && shared->contains(note);
    return is_shared ? text("notes", note, shared->at(note)) : note;
  }

  std::string text(const std::string& table, const std::string& key, const Json& value) const {
    if (!value.is_string()) refuse(table, fmt::format("\"{}\": expected a text", key));
    return value.get<std::string>();
  }

  const Json& list(const std::string& table, const std::string& key, const Json& value) const {
    if (!value.is_array()) refuse(table, fmt::format("\"{}\": expected a list: [ ... ]", key));
    return value;
  }

  bool is_true(const std::string& table, const std::string& key, const Json& value) const {
    if (!value.is_boolean()) refuse(table, fmt::format("\"{}\": expected true or false", key));
    return value.get<bool>();
  }

  const Json& root_;
  std::string origin_, family_;
};

}  // namespace

std::vector<TableSpec> read_tables(std::string_view text, const std::string& origin) {
  const Json root = parse_commented_object(text, origin);
  return TableReader(root, origin).read();
}

std::vector<ModelSize> read_models(std::string_view text, const std::string& origin) {
  const Json root = parse_commented_object(text, origin);
  std::vector<ModelSize> models;
  if (!root.contains("models")) return models;
  try {
    for (const auto& [name, size] : root.at("models").items()) {
      models.push_back({name, size.at("num_parameters").get<long long>(), size.at("hidden_size").get<long long>(),
                        size.at("num_layers").get<long long>(), size.value("remark", "")});
    }
  } catch (const Json::exception&) {
    refuse_file(origin, "\"models\": expected {NAME: {\"num_parameters\": N, \"hidden_size\": N, \"num_layers\": N}}");
  }
  return models;
}

}  // namespace tessera
