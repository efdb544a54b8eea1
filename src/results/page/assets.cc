#include "results/page/assets.h"

namespace tessera {

const char* const kPageStyle =
#include "results/page/assets/page.css"
    ;

const char* const kPageScript =
#include "results/page/assets/page.js"
    ;

}  // namespace tessera
