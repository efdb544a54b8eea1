#include "data/templates/variables.h"

#include <limits>

#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

std::string sound_text(const std::string& text) {
  return num_well_formed_bytes(text) == text.size() ? text : replace_ill_formed(text);
}

}  // namespace

Value value_of_json(Rendering& rendering, const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        rendering.refuse(kBeyond64Bits);
      }
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return rendering.text(sound_text(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      const DepthGuard guard(rendering);
      Values items;
      for (const Json& item : json) items.push_back(value_of_json(rendering, item));
      return rendering.list(std::move(items));
    }
    case Json::value_t::object: {
      const DepthGuard guard(rendering);
      Entries entries;
      for (const auto& [key, value] : json.items()) {
        entries.emplace_back(rendering.text(sound_text(key)), value_of_json(rendering, value));
      }
      return rendering.dict(std::move(entries));
    }
    default:
      return {};
  }
}

}  // namespace tessera::internal::jinja
