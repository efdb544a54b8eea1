// Wakes a thread that waits in poll(): watch fd() for reading, ring() from any thread, clear() after poll().
#pragma once

#include "core/file_descriptor.h"

namespace tessera {

class WakeUp {
 public:
  WakeUp();  // throws Error
  int fd() const { return fd_.get(); }
  void ring() const;
  void clear() const;

 private:
  Fd fd_;
};

}  // namespace tessera
