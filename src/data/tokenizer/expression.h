// Regular expressions in tokenizer files use Oniguruma's syntax; PCRE2 has another syntax and another version of
// Unicode. This translates one into the other: character classes are spelled out from our own tables, [a[bc]&&[^d]] is
// evaluated, and anything that PCRE2 would read differently is refused by name.
#pragma once

#include <string>

namespace tessera::internal {

// `where` is what messages call the place. Throws UsageError if the expression uses something unsupported.
std::string to_pcre(const std::string& expression, const std::string& where);

}  // namespace tessera::internal
