// How libtorch's own messages reach a user.
#pragma once

namespace tessera {

// From now on, on this thread: its warnings are lines of our log, each once; its errors carry no backtrace, unless the
// log shows debug lines.
void tame_torch_messages();

}  // namespace tessera
