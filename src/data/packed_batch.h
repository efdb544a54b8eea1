// The form of text that models take: a public header, since users' programs make batches of their own.
#pragma once

#include "tessera/packed_batch.h"
