#include "launch/say.h"

#include <unistd.h>

namespace tessera {

void say_line(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace tessera
