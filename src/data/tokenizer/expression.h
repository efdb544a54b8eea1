// Regular expressions of tokenizer files are Oniguruma's; PCRE2 reads another syntax and knows another version of
// Unicode. This turns one into the other: classes of characters are spelled out from our own tables, [a[bc]&&[^d]] is
// worked out, and what PCRE2 would take for something else is refused by name.
#pragma once

#include <string>

namespace tessera::internal {

// `where` is what messages call the place. Throws UsageError where the expression has something that is not supported.
std::string to_pcre(const std::string& expression, const std::string& where);

}  // namespace tessera::internal
