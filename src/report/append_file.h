// A file that grows record by record, each of which is with the system when append() returns.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

class AppendFile {
 public:
  enum class Mode { kNew, kReplace, kContinue };  // kNew: refused where the file is there

  // Makes the folders that lead to it. Throws Error with path and reason, as does append().
  AppendFile(std::filesystem::path path, Mode mode);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // A record of which only a part could be written is taken back, so that what follows can be read.
  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace tessera
