// The form of text that models take. A public header, since users' programs make their own batches.
#pragma once

#include "tessera/packed_batch.h"
