// The page's style sheet and script, assets/page.css and assets/page.js, as text. (no torch)
//
// Each of those files is one raw string literal, so that the compiler embeds it: nothing has to be installed or found.
#pragma once

namespace tessera {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace tessera
