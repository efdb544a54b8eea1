// Feeds a fuzz target the files of a corpus folder, one after another: PROGRAM FOLDER.
//
// Goes in the order of their names and prints each name first, so that a crash shows which file caused it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::filesystem::path& file) {
  std::fprintf(stderr, "%s\n", file.filename().c_str());
  std::ifstream stream(file, std::ios::binary);
  // A vector of exactly the file's size: a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const auto files = files_of(argv[1]);
    for (const auto& file : files) replay(file);
    std::printf("%zu files\n", files.size());
    if (files.empty()) std::fprintf(stderr, "%s holds no file: nothing was tried\n", argv[1]);
    return files.empty() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "not a refusal but a mistake of ours: %s\n", error.what());
    return 1;
  }
}
