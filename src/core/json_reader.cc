#include "core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

struct Way {
  std::vector<std::size_t> steps;  // the place in each value from the root inwards
  std::size_t num_tokens = 0;      // before the value, as internal::token_position() counts them
  bool is_member = false;          // of an object: the last of these is its key
};

// Ordered objects keep the order of the text, so counting members finds them there, too.
bool find_way(const Json& at, const Json* wanted, Way& way) {
  if (&at == wanted) return true;
  ++way.num_tokens;
  if (!at.is_structured()) return false;
  way.steps.push_back(0);
  for (const Json& child : at) {
    way.is_member = at.is_object();
    if (way.is_member) ++way.num_tokens;
    if (find_way(child, wanted, way)) return true;
    ++way.steps.back();
  }
  way.steps.pop_back();
  ++way.num_tokens;
  return false;
}

Way way_to(const Json& root, const Json* wanted) {
  Way way;
  find_way(root, wanted, way);
  return way;
}

template <typename Number>
std::string range_text(const char* kind, Number low, Number high) {
  const bool has_low = low > static_cast<Number>(JsonReader::kLowest);
  const bool has_high = high < static_cast<Number>(JsonReader::kHighest);
  if (has_low && has_high) return fmt::format("{} from {} to {}", kind, low, high);
  if (has_low) return fmt::format("{} of at least {}", kind, low);
  return has_high ? fmt::format("{} of at most {}", kind, high) : kind;
}

}  // namespace

std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  return value.is_object() ? "an object" : printable(json_text(value), 60);
}

std::string JsonReader::as_text() const {
  if (!value_->is_string()) refuse_value("a string");
  return value_->get<std::string>();
}

bool JsonReader::as_bool() const {
  if (!value_->is_boolean()) refuse_value("true or false");
  return value_->get<bool>();
}

std::int64_t JsonReader::as_integer(std::int64_t low, std::int64_t high) const {
  const bool is_too_large =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(kHighest);
  const std::int64_t number = value_->is_number_integer() && !is_too_large ? value_->get<std::int64_t>() : 0;
  if (!value_->is_number_integer() || is_too_large || number < low || number > high) {
    refuse_value(range_text("a whole number", low, high));
  }
  return number;
}

double JsonReader::as_real(double low, double high) const {
  const double number = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(number >= low && number <= high)) {
    refuse_value(range_text("a number", low, high));
  }
  return number;
}

std::vector<std::string> JsonReader::as_texts() const {
  return texts_of(items(), &JsonReader::as_text);
}

std::size_t JsonReader::size() const {
  if (!value_->is_array()) refuse_value("an array");
  return value_->size();
}

std::vector<JsonReader> JsonReader::items() const {
  std::vector<JsonReader> items;
  items.reserve(size());
  for (const Json& item : *value_) items.push_back({item, *source_});
  return items;
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!value_->is_object()) refuse_value("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonReader(*found, *source_);
}

JsonReader JsonReader::at(std::string_view key) const {
  if (!value_->is_object()) refuse_value("an object");
  const auto found = value_->find(key);
  if (found != value_->end()) return {*found, *source_};
  std::vector<std::string> names;
  for (const auto& [name, member] : value_->items()) names.push_back(printable(name, 40));
  std::string advice;
  if (const auto meant = nearest(key, names)) {
    advice = fmt::format("; is \"{}\" a spelling mistake?", *meant);
  } else if (!names.empty()) {
    advice = "; found " + listed(names);
  }
  refuse(fmt::format("\"{}\" is missing{}", key, advice));
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  if (!value_->is_object()) refuse_value("an object");
  std::vector<std::pair<std::string, JsonReader>> members;
  for (const auto& [name, member] : value_->items()) members.emplace_back(name, JsonReader(member, *source_));
  return members;
}

void JsonReader::allow_only(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : members()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    const auto meant = nearest(key, keys);
    value.refuse_key(meant ? fmt::format("unknown key; did you mean \"{}\"?", *meant)
                           : fmt::format("unknown key; known keys: {}", join(keys, ", ")));
  }
}

std::optional<JsonReader> JsonReader::member(JsonNames names, bool has_preset) const {
  std::optional<JsonReader> found = find(names.first());
  for (const char* name : names.others()) {
    const std::optional<JsonReader> other = find(name);
    if (found && other && found->json() != other->json()) {
      other->refuse(fmt::format("expected {} as {}, its other name, says, found {}: remove one", shown(found->json()),
                                names.first(), shown(other->json())));
    }
    if (!found) found = other;
  }
  if (!found && !has_preset) return at(names.first());  // refuses
  return found;
}

std::string JsonReader::text(JsonNames names, std::optional<std::string> preset) const {
  const auto found = member(names, preset.has_value());
  return found ? found->as_text() : *preset;
}

bool JsonReader::boolean(JsonNames names, std::optional<bool> preset) const {
  const auto found = member(names, preset.has_value());
  return found ? found->as_bool() : *preset;
}

std::int64_t JsonReader::integer(JsonNames names, std::int64_t low, std::int64_t high,
                                 std::optional<std::int64_t> preset) const {
  const auto found = member(names, preset.has_value());
  return found ? found->as_integer(low, high) : *preset;
}

double JsonReader::real(JsonNames names, double low, double high, std::optional<double> preset) const {
  const auto found = member(names, preset.has_value());
  return found ? found->as_real(low, high) : *preset;
}

std::vector<std::int64_t> JsonReader::integers(const char* name, std::int64_t low, std::int64_t high) const {
  const auto found = find(name);
  if (!found) return {};
  if (!found->is_array()) return {found->as_integer(low, high)};
  std::vector<std::int64_t> numbers;
  for (const JsonReader& item : found->items()) numbers.push_back(item.as_integer(low, high));
  return numbers;
}

std::string JsonReader::label(const char* key) const {
  const auto found = find(key);
  if (!found) return {};
  return found->json().is_number() ? found->json().dump() : found->as_text();
}

std::string JsonReader::path() const {
  std::string path;
  const Json* at = source_->root;
  for (const std::size_t step : way_to(*source_->root, value_).steps) {
    const auto child = std::next(at->begin(), static_cast<std::ptrdiff_t>(step));
    path += at->is_array() ? fmt::format("[{}]", step) : path.empty() ? child.key() : "." + child.key();
    at = &*child;
  }
  return printable(path);
}

std::string JsonReader::place(JsonPart part) const {
  if (source_->text.empty()) return source_->origin;
  const Way way = way_to(*source_->root, value_);
  const std::size_t number = way.num_tokens - (part == JsonPart::kKey && way.is_member ? 1 : 0);
  const internal::TextPosition at = internal::token_position(source_->text, number);
  return fmt::format("{}:{}:{}", source_->origin, at.line + source_->num_lines_before, at.column);
}

void JsonReader::refuse_value(const std::string& expected) const {
  refuse(fmt::format("expected {}, found {}", expected, shown(*value_)));
}

void JsonReader::refuse(const std::string& mistake) const {
  const std::string own = path();
  const std::string name = own.empty() && !source_->text.empty() ? source_->name : own;
  throw UsageError(fmt::format("{}: {}{}{}", place(), name, name.empty() ? "" : ": ", mistake));
}

void JsonReader::refuse_key(const std::string& mistake) const {
  throw UsageError(fmt::format("{}: {}: {}", place(JsonPart::kKey), path(), mistake));
}

void JsonReader::refuse_member(std::string_view key, const std::string& mistake) const {
  if (const auto found = find(key)) found->refuse(mistake);
  const std::string own = path();
  throw UsageError(fmt::format("{}: {}{}{}: {}", place(), own, own.empty() ? "" : ".", key, mistake));
}

}  // namespace tessera
