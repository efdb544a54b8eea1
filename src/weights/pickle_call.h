// The functions and classes that a pickle may name, interpreted rather than called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/pickle_value.h"

namespace tessera::internal {

// The place of an error: which pickle and where in it.
struct PickleSite {
  const std::string& origin;
  std::size_t at;
  [[noreturn]] void refuse(const std::string& what) const;
};

// Whether a pickle of this scope may name module.name.
bool is_known_global(std::string_view module, std::string_view name, PickleScope scope);

// What the function (a known kGlobal) would return for this tuple of arguments; for one that is not interpreted, an
// object. Throws UsageError naming the site.
Value understood_call(const Value& function, const Value& arguments, const PickleSite& site);

// What torch's persistent id stands for: a storage.
Value understood_storage(const Value& id, const PickleSite& site);

bool is_text(const Value& value, std::string_view text);
bool is_empty_dict(const Value& value);

}  // namespace tessera::internal
