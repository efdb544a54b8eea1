// The launcher's own lines, on standard error, one write each: "tessera launch: ...".
#pragma once

#include <fmt/format.h>

#include <string>

namespace tessera {

void say_line(const std::string& line);  // as it is, without the launcher's name

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_line("tessera launch: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tessera
