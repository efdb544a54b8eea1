// Log records in JSON files. JSON has no nan and no infinity: these are the words "nan", "inf" and "-inf".
#pragma once

#include "core/json.h"
#include "core/log_record.h"

namespace tessera {

Json json_of(const LogValue& value);
Json json_of(const LogRecord& record);
// Throws UsageError "<origin>: expected ..." where it is no object of plain values.
LogRecord log_record_of(const Json& object, const std::string& origin);

}  // namespace tessera
