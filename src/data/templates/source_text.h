// The text of a template, and messages about places in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::internal::jinja {

using Offset = std::uint32_t;  // a byte of the text

class SourceText {
 public:
  // As Jinja2 reads it: \r\n and \r become \n, and one \n at the end goes. Throws UsageError where the text is not
  // UTF-8 or too long.
  SourceText(std::string_view text, std::string origin);

  std::string_view text() const { return text_; }
  std::string place(Offset offset) const;  // "model/chat_template.jinja:3:14"; columns count characters
  [[noreturn]] void refuse(Offset offset, const std::string& mistake) const;

 private:
  std::string text_, origin_;
};

}  // namespace tessera::internal::jinja
