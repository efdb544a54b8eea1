#include "data/templates/rendering.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/text.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

std::string sound_text(const std::string& text) {
  return num_well_formed_bytes(text) == text.size() ? text : replace_ill_formed(text);
}

}  // namespace

void Rendering::refuse_chat(const std::string& message) const {
  throw ChatRefused(
      fmt::format("{}: the template refuses this conversation: {}", source_.place(at_), printable(message, 2000)));
}

void Rendering::refuse_cost() const {
  refuse(fmt::format("rendering takes more than {} steps", grouped(static_cast<long long>(options_.limits.num_steps))));
}

void Rendering::spend_repeated(std::size_t num_bytes, std::size_t times) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(num_bytes, times, &total)) refuse_cost();
  spend_text(total);
}

std::size_t Rendering::depth_above(std::size_t deepest) const {
  if (deepest >= options_.limits.depth) {
    refuse(fmt::format("values are nested more than {} levels deep", options_.limits.depth));
  }
  return deepest + 1;
}

Value Rendering::list(Values items, bool is_tuple) {
  spend(1 + items.size());
  std::size_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  const std::size_t depth = depth_above(deepest);
  return Value(List{std::move(items), is_tuple, depth});
}

Value Rendering::dict(Entries entries) {
  spend(1 + 2 * entries.size());
  std::size_t deepest = 0;
  for (const auto& [key, value] : entries) deepest = std::max(deepest, value.depth());
  const std::size_t depth = depth_above(deepest);
  return Value(std::make_shared<const Dict>(Dict{std::move(entries), depth}));
}

Value Rendering::of_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) refuse(kBeyond64Bits);
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return text(sound_text(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      Values items;
      for (const Json& item : json) items.push_back(of_json(item));
      return list(std::move(items));
    }
    case Json::value_t::object: {
      Entries entries;
      for (const auto& [key, value] : json.items()) entries.emplace_back(text(sound_text(key)), of_json(value));
      return dict(std::move(entries));
    }
    default:
      return {};
  }
}

PlaceGuard::PlaceGuard(Rendering& rendering, Offset offset) : rendering_(rendering), outer_(rendering.at_) {
  rendering.at_ = offset;
  rendering.spend(1);
  if (rendering.num_nested_ >= Rendering::kMostNested) {
    rendering.refuse(
        fmt::format("statements and expressions are nested more than {} levels deep", Rendering::kMostNested));
  }
  ++rendering.num_nested_;
}

}  // namespace tessera::internal::jinja
