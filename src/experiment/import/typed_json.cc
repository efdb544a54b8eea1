#include "experiment/import/typed_json.h"

#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {

Json typed_json(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  Json number;
  if (const auto whole = parse_integer(text)) {
    number = *whole;
  } else if (const auto real = parse_real(text)) {
    number = *real;
  }
  // Only if it reads back as it was written.
  return !number.is_null() && text_of(number) == text ? number : Json(text);
}

}  // namespace tessera
