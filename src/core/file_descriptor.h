// File descriptors that close themselves. (no torch)
#pragma once

namespace tessera {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// A pipe; throws Error.
struct Pipe {
  Pipe();
  Fd read_end, write_end;
};

}  // namespace tessera
