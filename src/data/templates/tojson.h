// The filter tojson, as Python's json.dumps writes: every character as it is unless ensure_ascii asks otherwise.
#pragma once

#include "data/templates/functions.h"

namespace tessera::internal::jinja {

Value tojson(const Call& call);  // ensure_ascii, indent, separators, sort_keys

}  // namespace tessera::internal::jinja
