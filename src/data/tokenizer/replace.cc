#include "data/tokenizer/replace.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tessera::internal {
namespace {

constexpr std::size_t kMostBytes = sizeof(std::uint32_t);

// Four bytes are stored for each one that is read, so that the loop has no branch: where the spaces of a text are
// cannot be predicted. `content` has at most kMostBytes.
std::string replace_byte(std::string_view text, char byte, std::string_view content) {
  const auto num_found = static_cast<std::size_t>(std::count(text.begin(), text.end(), byte));
  const std::size_t size = text.size() - num_found + num_found * content.size();
  std::string result(size + kMostBytes, '\0');
  std::uint32_t replacement = 0;
  std::memcpy(&replacement, content.data(), content.size());
  char* out = result.data();
  for (const char c : text) {
    std::uint32_t kept = 0;
    std::memcpy(&kept, &c, 1);
    const std::uint32_t stored = c == byte ? replacement : kept;
    std::memcpy(out, &stored, sizeof stored);
    out += c == byte ? content.size() : 1;
  }
  result.resize(size);
  return result;
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view what, std::string_view content) {
  if (what.size() == 1 && content.size() <= kMostBytes) return replace_byte(text, what[0], content);
  std::string result;
  result.reserve(text.size());
  std::size_t done = 0;
  for (std::size_t at = 0; (at = text.find(what, done)) != std::string_view::npos; done = at + what.size()) {
    result += text.substr(done, at - done);
    result += content;
  }
  return result += text.substr(done);
}

}  // namespace tessera::internal
