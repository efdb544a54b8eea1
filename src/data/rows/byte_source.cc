#include "data/rows/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/file.h"

namespace tessera {

namespace {

gzFile gzip(void* file) {
  return static_cast<gzFile>(file);
}

}  // namespace

void ByteSource::Closer::operator()(void* file) const {
  gzclose(static_cast<gzFile>(file));
}

// zlib looks at the first two bytes and hands on what gzip did not pack as it is.
ByteSource::ByteSource(const std::filesystem::path& path) : path_(path) {
  Fd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  }
  file_.reset(gzdopen(descriptor.get(), "rb"));
  if (!file_) throw Error(fmt::format("cannot read {}: no memory", path.string()));
  descriptor.release();
  constexpr unsigned kBufferBytes = 256 << 10;
  gzbuffer(gzip(file_.get()), kBufferBytes);
}

bool ByteSource::read(std::string& bytes, std::size_t most_bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + most_bytes);
  const int count = gzread(gzip(file_.get()), bytes.data() + before, static_cast<unsigned>(most_bytes));
  int status = Z_OK;
  gzerror(gzip(file_.get()), &status);
  // Z_BUF_ERROR: the file ended in the middle, which gzread alone does not report.
  if (count < 0 || status != Z_OK) fail();
  bytes.resize(before + static_cast<std::size_t>(count));
  return count > 0;
}

void ByteSource::skip(std::uint64_t num_bytes) {
  constexpr std::uint64_t kPieceBytes = 1 << 20;
  std::string piece;
  while (num_bytes > 0) {
    piece.clear();
    if (!read(piece, std::min(num_bytes, kPieceBytes))) return;
    num_bytes -= piece.size();
  }
}

bool ByteSource::is_packed() const {
  return gzdirect(gzip(file_.get())) == 0;
}

std::int64_t ByteSource::num_file_bytes_read() const {
  return gzoffset(gzip(file_.get()));
}

void ByteSource::fail() const {
  int status = Z_OK;
  const std::string reason = gzerror(gzip(file_.get()), &status);
  switch (status) {
    case Z_BUF_ERROR:
      throw UsageError(fmt::format("{}: the file is cut off: its gzip data ends too early", path_.string()));
    case Z_ERRNO:
      throw UsageError(fmt::format("cannot read {}: {}", path_.string(), std::generic_category().message(errno)));
    default:
      throw UsageError(fmt::format("{}: the gzip data is damaged: {}", path_.string(), reason));
  }
}

}  // namespace tessera
