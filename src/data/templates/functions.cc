#include "data/templates/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/templates/python.h"

namespace tessera::internal::jinja {
namespace {

// Python's other methods.
constexpr std::string_view kUnsupportedTextMethods =
    " casefold center count encode expandtabs find format_map index isalnum isalpha isascii isdecimal isdigit "
    "isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans partition removeprefix "
    "removesuffix rfind rindex rjust rpartition rsplit splitlines swapcase translate zfill ";
constexpr std::string_view kUnsupportedListMethods =
    " append clear copy count extend index insert pop remove reverse sort ";
constexpr std::string_view kUnsupportedDictMethods = " clear copy fromkeys pop popitem setdefault update ";

bool has_word(std::string_view words, std::string_view word) {
  return words.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

[[noreturn]] void refuse_name(Rendering& rendering, const char* what, std::string_view name,
                              std::initializer_list<Functions> tables) {
  std::vector<std::string> names;
  for (const Functions table : tables) {
    for (const Function& each : table) names.emplace_back(each.name);
  }
  rendering.refuse(fmt::format("the {} '{}' is not supported{}", what, printable(name, 60), did_you_mean(name, names)));
}

}  // namespace

Call::Call(Rendering& rendering_now, const Function& function, const Value& self_value, const Arguments& given)
    : rendering(rendering_now), self(self_value), arguments(given), function_(function.name) {
  if (function.parameters == "...") return;
  std::size_t num_parameters = 0;
  std::array<bool, kMostParameters> is_required = {};
  for (std::string_view rest = function.parameters; !rest.empty(); ++num_parameters) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    is_required[num_parameters] = !word.ends_with('?');
    names_[num_parameters] = word.substr(0, word.find('?'));
  }
  if (given.positional.size() > num_parameters) {
    refuse(fmt::format("takes at most {} arguments, found {}", num_parameters, given.positional.size()));
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto end = names_.begin() + static_cast<std::ptrdiff_t>(num_parameters);
    const auto found = std::find(names_.begin(), end, name);
    if (found == end) refuse(fmt::format("has no argument '{}'", printable(name, 60)));
    const Value*& place = values_[static_cast<std::size_t>(found - names_.begin())];
    if (place != nullptr) refuse(fmt::format("got two values for '{}'", name));
    place = &value;
  }
  for (std::size_t i = 0; i < num_parameters; ++i) {
    if (is_required[i] && !has(i)) refuse(fmt::format("needs its argument '{}'", names_[i]));
  }
}

void Call::refuse(const std::string& mistake) const {
  rendering.refuse(fmt::format("{} {}", function_, mistake));
}

Value Call::value_or(std::size_t index, Value preset) const {
  return is_absent(index) ? std::move(preset) : at(index);
}

std::int64_t Call::integer(std::size_t index, std::int64_t preset) const {
  if (is_absent(index)) return preset;
  rendering.check_defined(at(index));
  if (at(index).integer()) return *at(index).integer();
  refuse(
      fmt::format("expects a whole number for '{}', found a value of type '{}'", names_[index], at(index).type_name()));
}

std::string Call::text(std::size_t index, std::string preset) const {
  if (is_absent(index)) return preset;
  rendering.check_defined(at(index));
  if (at(index).text() == nullptr) {
    refuse(fmt::format("expects a text for '{}', found a value of type '{}'", names_[index], at(index).type_name()));
  }
  rendering.spend_text(at(index).text()->size());
  return *at(index).text();
}

bool Call::boolean(std::size_t index, bool preset) const {
  return has(index) ? truth_of(at(index)) : preset;
}

std::string Call::self_text() const {
  if (self.is_markup()) refuse("of a text that went through the filter safe is not supported: put safe last");
  return str_of(rendering, self);
}

Value call_function(Rendering& rendering, const Function& function, const Value& self, const Arguments& arguments) {
  return function.body(Call(rendering, function, self, arguments));
}

const Function* find_function(Functions functions, std::string_view name) {
  const auto found = std::ranges::find(functions, name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

const Function& filter_of(Rendering& rendering, std::string_view name) {
  const Function* filter = find_function(text_filters(), name);
  if (filter == nullptr) filter = find_function(list_filters(), name);
  if (filter == nullptr) refuse_name(rendering, "filter", name, {text_filters(), list_filters()});
  return *filter;
}

const Function& test_of(Rendering& rendering, std::string_view name) {
  const Function* const test = find_function(tests(), name);
  if (test == nullptr) refuse_name(rendering, "test", name, {tests()});
  return *test;
}

const Function* find_method(Rendering& rendering, const Value& value, std::string_view name) {
  const bool is_text = value.text() != nullptr, is_dict = value.dict() != nullptr;
  if (!is_text && !is_dict && value.list() == nullptr) return nullptr;
  if (is_text || is_dict) {
    if (const Function* method = find_function(is_text ? text_methods() : dict_methods(), name)) return method;
  }
  if (has_word(is_text ? kUnsupportedTextMethods : is_dict ? kUnsupportedDictMethods : kUnsupportedListMethods, name)) {
    rendering.refuse(fmt::format("the method '{}' of '{}' is not supported", name, value.type_name()));
  }
  return nullptr;
}

}  // namespace tessera::internal::jinja
