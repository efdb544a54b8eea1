#include "data/templates/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/templates/compare.h"

namespace tessera::internal::jinja {

Parameters::Parameters(Rendering& rendering, std::string_view function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t num_required)
    : rendering_(rendering), function_(function) {
  std::copy(names.begin(), names.end(), names_);
  if (arguments.positional.size() > names.size()) {
    refuse(fmt::format("takes at most {} arguments, found {}", names.size(), arguments.positional.size()));
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) refuse(fmt::format("has no argument '{}'", name));
    const Value*& place = values_[found - names.begin()];
    if (place != nullptr) refuse(fmt::format("got two values for '{}'", name));
    place = &value;
  }
  for (std::size_t i = 0; i < num_required; ++i) {
    if (values_[i] == nullptr) refuse(fmt::format("needs its argument '{}'", names.begin()[i]));
  }
}

Value Parameters::value_or(std::size_t index, Value preset) const {
  return is_absent(index) ? std::move(preset) : at(index);
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t preset) const {
  if (is_absent(index)) return preset;
  rendering_.check_defined(at(index));
  if (!at(index).integer()) {
    refuse(fmt::format("expects a whole number for '{}', found a value of type '{}'", names_[index],
                       at(index).type_name()));
  }
  return *at(index).integer();
}

bool Parameters::boolean(std::size_t index, bool preset) const {
  return has(index) ? truth_of(rendering_, at(index)) : preset;
}

std::string Parameters::text(std::size_t index, std::string preset) const {
  if (is_absent(index)) return preset;
  rendering_.check_defined(at(index));
  if (at(index).text() == nullptr) {
    refuse(fmt::format("expects a text for '{}', found a value of type '{}'", names_[index], at(index).type_name()));
  }
  rendering_.spend_text(at(index).text()->size());
  return *at(index).text();
}

void Parameters::refuse(const std::string& mistake) const {
  rendering_.refuse(fmt::format("{} {}", function_, mistake));
}

}  // namespace tessera::internal::jinja
