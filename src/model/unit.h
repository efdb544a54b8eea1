// How a model presents itself to the code that shards it. A public header, since users' own models take part.
#pragma once

#include "tessera/unit.h"
