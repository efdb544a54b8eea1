// Functions that every template has.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "data/templates/functions.h"
#include "data/templates/python.h"
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
  return call.rendering.make<Sequence>(std::move(numbers), /*is_generator=*/false);
}

Value make_namespace(const Call& call) {
  if (!call.arguments.positional.empty()) call.refuse("supports named values only: name=value");
  return call.rendering.make<Namespace>(call.arguments.named);
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
      {"namespace", "...", make_namespace},
      {"raise_exception", "message",
       [](const Call& call) -> Value { call.rendering.refuse_chat(str_of(call.rendering, call.at(0))); }},
      {"strftime_now", "format", strftime_now},
  };
  return kGlobals;
}

}  // namespace tessera::internal::jinja
