// A file that grows record by record. When append() returns, the record has been handed to the system.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

class AppendFile {
 public:
  enum class Mode { kNew, kReplace, kContinue };  // kNew: refused if the file exists

  // Creates the parent folders. Throws Error with path and reason, as does append().
  AppendFile(std::filesystem::path path, Mode mode);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // A partly written record is removed again, so that later records can be read.
  void append(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail(int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace tessera
