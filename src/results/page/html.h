// Text from users (run names, paths, log lines) made safe for each place of an HTML page where it may stand. (no torch)
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

// For text between tags and for values in double quotes: & < > " ' become entities; control characters that HTML does
// not allow, and bytes that are not UTF-8, become U+FFFD.
std::string html_text(std::string_view text);

// `file` as a link from a page in `page_folder`: relative, with every byte outside A-Z a-z 0-9 - . _ ~ / as %XX. It
// begins with "./" or "../", so that a file named "javascript:x" is no script.
std::string link_to(const std::filesystem::path& file, const std::filesystem::path& page_folder);

// The shortest text that reads back as the same number; "nan", "inf", "-inf".
std::string exact(double value);

// For people: about four significant digits, thousands grouped: 1,234,568; 123.5; 0.01234; 5e-05. "-" for nan.
std::string readable(double value);

// 75 as "1 min 15 s", 0.25 as "0.25 s", 7322 as "2 h 2 min".
std::string readable_seconds(double seconds);

// MB are 2^20 bytes, as everywhere in run records: "512 MiB", "12.35 GiB".
std::string readable_MB(double megabytes);

}  // namespace tessera
