#include "core/gzip.h"

#include <zlib.h>

#include <limits>
#include <string>

#include "core/error.h"
#include "core/file.h"

namespace tessera {

void write_gzip_file(const std::filesystem::path& path, std::string_view content) {
  constexpr int kGzip = 16;  // added to the window's size: gzip's header instead of zlib's
  z_stream stream{};
  if (content.size() > std::numeric_limits<uInt>::max() ||
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(path.string() + ": cannot be compressed");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error(path.string() + ": cannot be compressed");
  write_file_atomically(path, packed);
}

}  // namespace tessera
