// Functions that every template has.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "data/templates/functions.h"
#include "data/templates/python_text.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

constexpr std::size_t kMaxRange = 100'000;  // the sandbox's own

Value range(const Call& call) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (call.has(i)) call.rendering.check_defined(call.at(i));
  }
  const std::int64_t start = call.has(1) ? call.integer(0, 0) : 0, stop = call.integer(call.has(1) ? 1 : 0, 0);
  const std::int64_t step = call.integer(2, 1);
  if (step == 0) call.refuse("needs a step that is not 0");
  Values numbers;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (numbers.size() == kMaxRange) call.refuse(fmt::format("gives at most {} numbers", kMaxRange));
    call.rendering.spend(1);
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return call.rendering.make<Sequence>(Sequence::Kind::kRange, std::move(numbers));
}

const NamedValues& named_only(const Call& call) {
  if (!call.arguments.positional.empty()) call.refuse("supports named values only: name=value");
  return call.arguments.named;
}

Value dict(const Call& call) {
  Entries entries;
  for (const auto& [name, value] : named_only(call)) entries.emplace_back(call.rendering.text(name), value);
  return call.rendering.dict(std::move(entries));
}

Value strftime_now(const Call& call) {
  const std::string format = call.text(0, "");
  const std::time_t now = call.rendering.options().now.value_or(std::time(nullptr));
  std::tm local{};
  localtime_r(&now, &local);
  // A conversion of two characters writes at most about 100 of them.
  constexpr std::size_t kMostFormat = 1000;
  if (format.size() > kMostFormat) call.refuse(fmt::format("supports a format of at most {} bytes", kMostFormat));
  std::array<char, 64 * kMostFormat> buffer;
  // The mark tells an empty text from one that does not fit.
  const std::size_t length = std::strftime(buffer.data(), buffer.size(), (format + "|").c_str(), &local);
  if (length == 0) call.refuse("writes too much text");
  return call.rendering.text(replace_ill_formed(std::string_view(buffer.data(), length - 1)));
}

}  // namespace

Functions globals() {
  static constexpr Function kGlobals[] = {
      {"range", "start stop? step?", range},
      {"namespace", "...", [](const Call& call) { return call.rendering.make<Namespace>(named_only(call)); }},
      {"dict", "...", dict},
      {"raise_exception", "message",
       [](const Call& call) -> Value { call.rendering.refuse_chat(str_of(call.rendering, call.at(0))); }},
      {"strftime_now", "format", strftime_now},
  };
  return kGlobals;
}

}  // namespace tessera::internal::jinja
