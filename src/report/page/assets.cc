#include "report/page/assets.h"

namespace tessera {

const char* const kPageStyle =
#include "report/page/assets/page.css"
    ;

const char* const kPageScript =
#include "report/page/assets/page.js"
    ;

}  // namespace tessera
