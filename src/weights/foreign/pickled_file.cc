#include "weights/foreign/pickled_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

using internal::Kind;
using internal::Value;

namespace {

// The entries of a dict, or of what an object's attributes are: a dict, or a tuple of one and one of slots.
std::vector<const Value*> dicts_of(const Value& value) {
  if (value.kind == Kind::kDict) return {&value};
  std::vector<const Value*> dicts;
  if (value.kind != Kind::kObject || value.state == nullptr) return dicts;
  if (value.state->kind == Kind::kDict) dicts.push_back(value.state);
  if (value.state->kind == Kind::kTuple && value.state->items.size() == 2) {
    for (const Value* part : value.state->items) {
      if (part->kind == Kind::kDict) dicts.push_back(part);
    }
  }
  return dicts;
}

// In host byte order, which is little-endian as the file's.
double element_at(const char* from, WeightType type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return static_cast<double>(value);
  };
  switch (type) {
    case WeightType::kF32:
      return as(float());
    case WeightType::kF64:
      return as(double());
    case WeightType::kI32:
      return as(std::int32_t());
    case WeightType::kI64:
      return as(std::int64_t());
    default:
      return std::nan("");
  }
}

}  // namespace

bool PickledNode::is_object(std::string_view dotted_name) const {
  return value_->kind == Kind::kObject && internal::dotted_name(value_->text) == dotted_name;
}

void PickledNode::refuse(const std::string& what) const {
  throw UsageError(path_.empty() ? fmt::format("{}: {}", file_->origin_, what)
                                 : fmt::format("{}: '{}': {}", file_->origin_, printable(path_), what));
}

void PickledNode::refuse_as(const char* expected) const {
  const bool is_named = value_->kind == Kind::kObject || value_->kind == Kind::kGlobal;
  refuse(fmt::format("expected {}, found {}", expected,
                     is_named ? internal::dotted_name(value_->text) : internal::name_of(value_->kind)));
}

PickledNode PickledNode::child(const Value& value, std::string_view key) const {
  return {*file_, value, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

std::optional<PickledNode> PickledNode::find(std::string_view key) const {
  const std::vector<const Value*> dicts = dicts_of(*value_);
  if (dicts.empty()) refuse_as("a dict");
  for (const Value* dict : dicts) {
    for (std::size_t i = 0; i < dict->items.size(); i += 2) {
      const Value& found = *dict->items[i];
      if (found.kind == Kind::kText && found.text == key) return child(*dict->items[i + 1], key);
    }
  }
  return std::nullopt;
}

PickledNode PickledNode::at(std::string_view key) const {
  const std::optional<PickledNode> found = find(key);
  if (!found) refuse(fmt::format("'{}' is missing", key));
  return *found;
}

PickledNode PickledNode::entry(const std::string& key) const {
  for (const auto& [found, value] : entries()) {
    if (found == key) return value;
  }
  refuse(fmt::format("'{}' is missing", printable(key)));
}

std::vector<std::pair<PickledNode, PickledNode>> PickledNode::pairs() const {
  if (value_->kind != Kind::kDict) refuse_as("a dict");
  std::vector<std::pair<PickledNode, PickledNode>> pairs;
  for (std::size_t i = 0; i < value_->items.size(); i += 2) {
    pairs.emplace_back(child(*value_->items[i], "a key"), child(*value_->items[i + 1], "a value"));
  }
  return pairs;
}

std::vector<std::pair<std::string, PickledNode>> PickledNode::entries() const {
  std::vector<std::pair<std::string, PickledNode>> entries;
  for (const auto& [key, value] : pairs()) {
    const std::string text = key.key_text();
    entries.emplace_back(text, child(*value.value_, text));
  }
  return entries;
}

std::vector<PickledNode> PickledNode::list() const {
  if (value_->kind != Kind::kList && value_->kind != Kind::kTuple) refuse_as("a list");
  std::vector<PickledNode> items;
  for (std::size_t i = 0; i < value_->items.size(); ++i) items.push_back(child(*value_->items[i], std::to_string(i)));
  return items;
}

PickledNode PickledNode::item(std::size_t index) const {
  const std::vector<PickledNode> items = list();
  if (index >= items.size()) refuse(fmt::format("it has {} items, expected at least {}", items.size(), index + 1));
  return items[index];
}

std::string PickledNode::text() const {
  if (value_->kind != Kind::kText) refuse_as("a string");
  return std::string(value_->text);
}

std::string PickledNode::key_text() const {
  return value_->kind == Kind::kInt ? std::to_string(value_->number) : text();
}

std::string PickledNode::name() const {
  if (value_->kind != Kind::kGlobal) refuse_as("a name");
  return internal::dotted_name(value_->text);
}

std::int64_t PickledNode::whole() const {
  if (value_->kind == Kind::kInt || value_->kind == Kind::kBool) return value_->number;
  // ZeroStageEnum(2)
  if (value_->kind == Kind::kObject && value_->arguments != nullptr && value_->arguments->items.size() == 1) {
    const Value& argument = *value_->arguments->items[0];
    if (argument.kind == Kind::kInt) return argument.number;
  }
  refuse_as("a whole number");
}

double PickledNode::number() const {
  if (value_->kind == Kind::kFloat) return value_->real;
  if (!is_tensor()) return static_cast<double>(whole());
  const WeightEntry entry = tensor();
  if (entry.numel != 1) refuse_as("a number");
  const double element = element_at(file_->file_->bytes().data() + entry.offset_bytes, entry.type);
  if (!std::isfinite(element)) refuse("expected a number, found a tensor that is none");
  return element;
}

std::vector<std::int64_t> PickledNode::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const PickledNode& size : list()) sizes.push_back(size.whole());
  return sizes;
}

WeightEntry PickledNode::tensor() const {
  if (!is_tensor()) refuse_as("a tensor");
  if (!file_->archive_) refuse("a tensor outside of a torch.save file");
  PickledTensor named = *value_->tensor;
  named.name = path_;
  WeightEntry entry = file_->archive_->place(named);
  if (!entry.is_contiguous()) refuse("a tensor whose elements do not lie one after another");
  entry.offset_bytes += static_cast<std::int64_t>(file_->offset_);
  return entry;
}

PickledFile::PickledFile(const std::filesystem::path& path)
    : PickledFile(std::make_shared<const MappedFile>(path), 0, std::string_view::npos, path.string()) {}

std::vector<StoredRecord> PickledFile::records() const {
  std::vector<StoredRecord> records;
  if (!archive_) return records;
  for (const ZipRecord& record : archive_->records()) {
    if (record.checksum == 0) continue;
    records.push_back({static_cast<std::int64_t>(offset_ + record.offset_bytes),
                       static_cast<std::int64_t>(record.num_bytes), record.checksum});
  }
  return records;
}

PickledFile::PickledFile(std::shared_ptr<const MappedFile> file, std::size_t offset, std::size_t num_bytes,
                         std::string origin)
    : file_(std::move(file)), origin_(std::move(origin)) {
  const std::string_view bytes = file_->bytes().substr(offset, num_bytes);
  std::string_view pickle = bytes;
  if (bytes.starts_with("PK")) {
    offset_ = offset;
    archive_.emplace(bytes, origin_);
    pickle = archive_->pickle();
    // Numbers that are read here; who reads the large ones checks them.
    constexpr std::uint64_t kSmallBytes = 4096;
    for (const ZipRecord& record : archive_->records()) {
      if (record.num_bytes <= kSmallBytes) check_record(record, bytes, origin_);
    }
  } else if (!bytes.starts_with('\x80')) {
    refuse_file(origin_, "neither a torch.save file nor a pickle");
  } else if (bytes.size() > kMaxPickleBytes) {
    refuse_file(origin_, fmt::format("a pickle of {} bytes; the limit is {}", bytes.size(), kMaxPickleBytes));
  }
  machine_.emplace(pickle, origin_, PickleScope::kCheckpoint);
  root_ = &machine_->run();
}

}  // namespace tessera
