#include "listeners/tensorboard.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "listeners/proto_writer.h"

namespace tessera {
namespace {

// Fields of TensorBoard's messages Event, Summary, Summary.Value, SummaryMetadata and TensorProto.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata {
constexpr int kPluginData = 1, kPluginName = 1;
}
namespace tensor {
constexpr int kType = 1, kShape = 2, kStrings = 8, kTypeString = 7, kDimension = 2, kSize = 1;
}

}  // namespace

std::filesystem::path default_logging_dir(const std::filesystem::path& output_dir, double wall_seconds,
                                          const std::string& host) {
  const auto time = fmt::localtime(static_cast<std::time_t>(wall_seconds));
  return output_dir / "runs" / fmt::format("{:%b%d_%H-%M-%S}_{}", time, host);
}

EventFile::EventFile(const std::filesystem::path& folder, double wall_seconds, const std::string& host)
    : file_(folder / fmt::format("events.out.tfevents.{}.{}.{}.0", static_cast<std::int64_t>(wall_seconds), host,
                                 ::getpid()),
            AppendFile::Mode::kNew) {
  add_event(ProtoWriter().real(event::kWallTime, wall_seconds).text(event::kFileVersion, "brain.Event:2").bytes());
}

void EventFile::add_scalars(std::int64_t step, double wall_seconds, const std::vector<Scalar>& scalars) {
  if (scalars.empty()) return;
  ProtoWriter values;
  for (const Scalar& scalar : scalars) {
    values.message(
        summary::kValue,
        ProtoWriter().text(value::kTag, scalar.tag).single(value::kSimpleValue, static_cast<float>(scalar.value)));
  }
  add_event(ProtoWriter()
                .real(event::kWallTime, wall_seconds)
                .integer(event::kStep, step)
                .message(event::kSummary, values)
                .bytes());
}

void EventFile::add_text(const std::string& tag, const std::string& markdown, double wall_seconds) {
  const ProtoWriter shape = ProtoWriter().message(tensor::kDimension, ProtoWriter().integer(tensor::kSize, 1));
  const ProtoWriter plugin = ProtoWriter().text(metadata::kPluginName, "text");
  const ProtoWriter text = ProtoWriter()
                               .integer(tensor::kType, tensor::kTypeString)
                               .message(tensor::kShape, shape)
                               .text(tensor::kStrings, markdown);
  // The text plugin looks for <tag>/text_summary.
  const ProtoWriter entry = ProtoWriter()
                                .text(value::kTag, tag + "/text_summary")
                                .message(value::kTensor, text)
                                .message(value::kMetadata, ProtoWriter().message(metadata::kPluginData, plugin));
  add_event(ProtoWriter()
                .real(event::kWallTime, wall_seconds)
                .message(event::kSummary, ProtoWriter().message(summary::kValue, entry))
                .bytes());
}

// A TFRecord: length, its checksum, the bytes, their checksum.
void EventFile::add_event(const std::string& bytes) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(bytes.size()));
  append_little_endian(record, masked_crc32c(record));
  record += bytes;
  append_little_endian(record, masked_crc32c(bytes));
  file_.append(record);
}

void TensorBoardListener::on_train_begin(const RunMoment& at) {
  file_ = std::make_unique<EventFile>(folder_, at.wall_seconds, host_);
  if (!settings_.empty()) file_->add_text("args", settings_, at.wall_seconds);
}

void TensorBoardListener::add(std::int64_t place, const RunMoment& at, const LogRecord& record, Naming naming) {
  if (!file_) return;  // it could not be opened, which was reported
  std::vector<EventFile::Scalar> scalars;
  for (const auto& [key, unused] : record.entries()) {
    if (const auto number = record.number(key)) scalars.push_back({naming(key), *number});
  }
  file_->add_scalars(place, at.wall_seconds, scalars);
}

// One byte at a time: event files grow by a few kilobytes per log.
std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kPolynomial : 0);
      made[byte] = value;
    }
    return made;
  }();
  std::uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) value = table[(value ^ static_cast<unsigned char>(byte)) & 0xFF] ^ value >> 8;
  return ~value;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

}  // namespace tessera
