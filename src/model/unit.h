// What a model is to whatever spreads it: a public header, since users' own models take part.
#pragma once

#include "tessera/unit.h"
