// What a template is given.
#pragma once

#include "core/json.h"
#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

Value value_of_json(Rendering& rendering, const Json& json);

}  // namespace tessera::internal::jinja
