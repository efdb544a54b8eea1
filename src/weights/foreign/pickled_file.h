// A file of a training program (torch.save's, or a bare pickle) as a tree of values, with messages that name the file
// and the place in the tree. Nothing in it is executed (weights/pickle.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/checkpoint_index.h"
#include "weights/mapped_file.h"
#include "weights/pickle_machine.h"
#include "weights/torch_file.h"
#include "weights/weight_entry.h"

namespace tessera {

class PickledFile;

// One value of the tree. Valid while its file lives. Whatever is asked of it and is not so is a UsageError.
class PickledNode {
 public:
  PickledNode(const PickledFile& file, const internal::Value& value, std::string path)
      : file_(&file), value_(&value), path_(std::move(path)) {}

  bool is_none() const { return value_->kind == internal::Kind::kNone; }
  bool is_dict() const { return value_->kind == internal::Kind::kDict; }
  bool is_tensor() const { return value_->kind == internal::Kind::kTensor; }
  bool is_object(std::string_view dotted_name) const;

  // An entry of a dict, or an attribute of an object. find(): none if there is no such entry.
  PickledNode at(std::string_view key) const;
  std::optional<PickledNode> find(std::string_view key) const;
  PickledNode entry(const std::string& key) const;  // of a dict, by a string or a whole number as text
  // Of a dict whose keys are strings or whole numbers, as "17".
  std::vector<std::pair<std::string, PickledNode>> entries() const;
  // Of a dict with any keys.
  std::vector<std::pair<PickledNode, PickledNode>> pairs() const;
  std::vector<PickledNode> list() const;  // a list's or tuple's
  PickledNode item(std::size_t index) const;

  std::string text() const;
  std::int64_t whole() const;               // a bool or an enumeration's value too
  double number() const;                    // or a tensor of one element
  std::vector<std::int64_t> sizes() const;  // a tuple of whole numbers
  std::string key_text() const;             // of a string or a whole number
  std::string name() const;                 // of a class or a type: "torch.float32"
  WeightEntry tensor() const;               // its elements lie in the file one after another
  bool operator==(const PickledNode& other) const { return value_ == other.value_; }

  [[noreturn]] void refuse(const std::string& what) const;

 private:
  [[noreturn]] void refuse_as(const char* expected) const;
  PickledNode child(const internal::Value& value, std::string_view key) const;

  const PickledFile* file_;
  const internal::Value* value_;
  std::string path_;  // "optimizer_state_dict.zero_stage"
};

class PickledFile {
 public:
  // Maps the file; its offsets are the file's. Throws UsageError.
  explicit PickledFile(const std::filesystem::path& path);
  // A part of a mapped file, `origin` for messages. Offsets are still the file's.
  PickledFile(std::shared_ptr<const MappedFile> file, std::size_t offset, std::size_t num_bytes, std::string origin);

  PickledFile(const PickledFile&) = delete;
  PickledFile& operator=(const PickledFile&) = delete;

  PickledNode root() const { return {*this, *root_, ""}; }
  const std::string& origin() const { return origin_; }
  std::vector<StoredRecord> records() const;  // of a torch.save file: those with a checksum

 private:
  friend class PickledNode;

  std::shared_ptr<const MappedFile> file_;
  std::string origin_;
  std::size_t offset_ = 0;  // of the archive
  std::optional<TorchArchive> archive_;
  std::optional<internal::PickleMachine> machine_;
  const internal::Value* root_ = nullptr;
};

}  // namespace tessera
