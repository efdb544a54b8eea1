#include "listeners/tensorboard.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "listeners/proto_writer.h"

namespace tessera {
namespace {

// Fields of TensorBoard's messages Event, Summary, Summary.Value, SummaryMetadata and TensorProto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueSimpleValue = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr int kMetadataPluginData = 1, kMetadataPluginName = 1;
constexpr int kTensorType = 1, kTensorShape = 2, kTensorStrings = 8, kTensorTypeString = 7, kTensorDimension = 2,
              kTensorSize = 1;

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
  add_event(ProtoWriter().real(kEventWallTime, wall_seconds).text(kEventFileVersion, "brain.Event:2").bytes());
}

void EventFile::add_scalars(std::int64_t step, double wall_seconds, const std::vector<Scalar>& scalars) {
  if (scalars.empty()) return;
  ProtoWriter values;
  for (const Scalar& scalar : scalars) {
    values.message(
        kSummaryValue,
        ProtoWriter().text(kValueTag, scalar.tag).single(kValueSimpleValue, static_cast<float>(scalar.value)));
  }
  add_event(ProtoWriter()
                .real(kEventWallTime, wall_seconds)
                .integer(kEventStep, step)
                .message(kEventSummary, values)
                .bytes());
}

void EventFile::add_text(const std::string& tag, const std::string& markdown, double wall_seconds) {
  const ProtoWriter shape = ProtoWriter().message(kTensorDimension, ProtoWriter().integer(kTensorSize, 1));
  const ProtoWriter plugin = ProtoWriter().text(kMetadataPluginName, "text");
  const ProtoWriter text =
      ProtoWriter().integer(kTensorType, kTensorTypeString).message(kTensorShape, shape).text(kTensorStrings, markdown);
  // The text plugin looks for <tag>/text_summary.
  const ProtoWriter entry = ProtoWriter()
                                .text(kValueTag, tag + "/text_summary")
                                .message(kValueTensor, text)
                                .message(kValueMetadata, ProtoWriter().message(kMetadataPluginData, plugin));
  add_event(ProtoWriter()
                .real(kEventWallTime, wall_seconds)
                .message(kEventSummary, ProtoWriter().message(kSummaryValue, entry))
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
