#include "parallel/unit_error.h"

#include <fmt/format.h>

#include "comm/failure.h"

namespace tessera {

void rethrow_in_unit(int rank, std::string_view phase, std::string_view unit) {
  const std::string where = fmt::format("rank {}, {} of unit {}", rank, phase, unit);
  try {
    throw;
  } catch (const UnitError&) {
    throw;
  } catch (const Error& error) {
    throw UnitError(fmt::format("{}: {}", where, error.what()), error.status());
  } catch (const std::exception& error) {
    throw UnitError(fmt::format("{}: {}", where, message_of(error)));  // without libtorch's backtrace
  } catch (...) {
    throw UnitError(fmt::format("{}: an exception that is not a std::exception", where));
  }
}

}  // namespace tessera
