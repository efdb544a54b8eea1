// A setting's text as the JSON value that a person would write. (no torch)
#pragma once

#include <string>

#include "core/json.h"

namespace tessera {

// "true" -> true, "500" -> 500, "5e-05" -> 5e-05; a text that is not exactly such a value stays a text: "0123",
// "1e400".
Json typed_json(const std::string& text);

}  // namespace tessera
