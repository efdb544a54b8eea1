// Functions that every template has.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "core/text.h"
#include "data/templates/arguments.h"
#include "data/templates/compare.h"
#include "data/templates/filters.h"
#include "data/templates/object.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

constexpr std::uint64_t kMaxRange = 100'000;  // the sandbox's own

Value range_function(Rendering& rendering, const Arguments& arguments) {
  const Parameters given(rendering, "range", arguments, {"start", "stop", "step"}, 1);
  const auto number = [&](std::size_t index) {
    rendering.check_defined(given.at(index));
    if (!given.at(index).integer()) {
      rendering.refuse(fmt::format("'{}' object cannot be interpreted as an integer", given.at(index).type_name()));
    }
    return *given.at(index).integer();
  };
  const std::int64_t start = given.has(1) ? number(0) : 0, stop = number(given.has(1) ? 1 : 0);
  const std::int64_t step = given.has(2) ? number(2) : 1;
  if (step == 0) rendering.refuse("range() arg 3 must not be zero");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  const std::uint64_t distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                          : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t length = is_empty ? 0 : (distance - 1) / stride + 1;
  if (length > kMaxRange) rendering.refuse(fmt::format("ranges have at most {} numbers, found {}", kMaxRange, length));
  return rendering.make<Range>(start, stop, step, static_cast<std::size_t>(length));
}

// A mapping or pairs, then named entries.
std::vector<std::pair<Value, Value>> entries_of(Rendering& rendering, const Arguments& arguments) {
  if (arguments.positional.size() > 1) rendering.refuse("dict expected at most 1 argument");
  std::vector<std::pair<Value, Value>> entries;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const Dict* other = source.dict()) {
      rendering.spend(other->entries.size());
      entries = other->entries;
    } else {
      for (const Value& pair : items_of(rendering, source)) {
        const Values parts = items_of(rendering, pair);
        if (parts.size() != 2) rendering.refuse("dict expects pairs of a key and a value");
        check_hashable(rendering, parts[0]);
        set_entry(rendering, entries, parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) set_entry(rendering, entries, rendering.text(name), value);
  return entries;
}

Value dict_function(Rendering& rendering, const Arguments& arguments) {
  return rendering.dict(entries_of(rendering, arguments));
}

Value namespace_function(Rendering& rendering, const Arguments& arguments) {
  Value space = rendering.make<Namespace>();
  for (auto& [name, value] : entries_of(rendering, arguments)) {
    if (name.text() == nullptr) rendering.refuse("names of a namespace must be texts");
    static_cast<Namespace*>(space.object())->set(rendering, *name.text(), value);
  }
  return space;
}

Value cycler_function(Rendering& rendering, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    rendering.refuse("at least one item has to be provided");
  return rendering.make<Cycler>(arguments.positional);
}

Value joiner_function(Rendering& rendering, const Arguments& arguments) {
  const Parameters given(rendering, "joiner", arguments, {"sep"});
  return rendering.make<Joiner>(given.has(0) ? given.at(0) : rendering.text(", "));
}

Value raise_exception(Rendering& rendering, const Arguments& arguments) {
  const Parameters given(rendering, "raise_exception", arguments, {"message"}, 1);
  rendering.refuse_chat(str_of(rendering, given.at(0)));
}

Value strftime_now(Rendering& rendering, const Arguments& arguments) {
  const Parameters given(rendering, "strftime_now", arguments, {"format"}, 1);
  const std::string format = given.text(0, "");
  const std::time_t now = rendering.options().now.value_or(std::time(nullptr));
  std::tm local{};
  localtime_r(&now, &local);
  // A conversion of two characters writes at most about 100 of them.
  constexpr std::size_t kMostFormat = 1000;
  if (format.size() > kMostFormat)
    rendering.refuse(fmt::format("a format of at most {} bytes is supported", kMostFormat));
  std::array<char, 64 * kMostFormat> buffer;
  // The mark tells an empty text from one that does not fit.
  const std::size_t length = std::strftime(buffer.data(), buffer.size(), (format + "|").c_str(), &local);
  if (length == 0) rendering.refuse("strftime_now writes too much text");
  return rendering.text(replace_ill_formed(std::string_view(buffer.data(), length - 1)));
}

Value lipsum(Rendering& rendering, const Arguments&) {
  rendering.refuse("lipsum is not supported: it writes another text each time");
}

constexpr GlobalFunction kGlobals[] = {
    {"range", range_function},   {"dict", dict_function},        {"namespace", namespace_function},
    {"cycler", cycler_function}, {"joiner", joiner_function},    {"raise_exception", raise_exception},
    {"lipsum", lipsum},          {"strftime_now", strftime_now},
};

}  // namespace

const GlobalFunction* find_global(std::string_view name) {
  for (const GlobalFunction& each : kGlobals) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace tessera::internal::jinja
