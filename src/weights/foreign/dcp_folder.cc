#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "weights/foreign/foreign_tensors.h"
#include "weights/foreign/pickled_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMetadata = ".metadata";
constexpr const char* kFsdpModel = "pytorch_model_fsdp_0/";
constexpr const char* kFsdpOptimizer = "optimizer_0/";

using Sizes = std::vector<std::int64_t>;
using Path = std::vector<std::string>;  // of keys, from the outermost dict in

// The row-major place of a chunk's first element, if its elements follow each other in the tensor: sizes of 1, then
// one cut, then whole dimensions.
std::optional<std::int64_t> flat_begin(const Sizes& shape, const Sizes& offsets, const Sizes& sizes) {
  if (offsets.size() != shape.size() || sizes.size() != shape.size()) return std::nullopt;
  std::int64_t begin = 0, stride = 1;
  bool is_whole = true;  // so far, from the last dimension on
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (offsets[i] < 0 || sizes[i] < 0 || offsets[i] > shape[i] || sizes[i] > shape[i] - offsets[i])
      return std::nullopt;
    if (!is_whole && sizes[i] != 1) return std::nullopt;
    is_whole = is_whole && sizes[i] == shape[i];
    begin += offsets[i] * stride;
    stride *= shape[i];
  }
  return begin;
}

// One folder with a .metadata.
class DcpFolder {
 public:
  // `below`: where it lies in the checkpoint's folder, "" or with a slash at its end.
  DcpFolder(ForeignTensors& tensors, std::string below)
      : tensors_(tensors), below_(std::move(below)), metadata_(tensors.folder() / below_ / kMetadata) {}

  void read() {
    const PickledNode root = metadata_.root();
    if (!root.is_object("torch.distributed.checkpoint.metadata.Metadata")) {
      root.refuse("not the metadata of a torch.distributed.checkpoint");
    }
    read_storage(root.at("storage_data"));
    std::map<std::string, Path> paths;
    const auto planned = root.find("planner_data");
    if (planned && planned->is_dict()) {
      for (const auto& [key, path] : planned->entries()) {
        for (const PickledNode& part : path.list()) paths[key].push_back(part.key_text());
      }
    }
    for (const auto& [key, description] : root.at("state_dict_metadata").entries()) {
      const auto path = paths.find(key);
      read_entry(key, path == paths.end() ? Path{key} : path->second, description);
    }
    if (left_.empty()) return;
    constexpr std::size_t kShown = 6;
    const std::string more = left_.size() > kShown ? fmt::format(" and {} more", left_.size() - kShown) : "";
    left_.resize(std::min(left_.size(), kShown));
    tensors_.checkpoint().left.push_back(join(left_, ", ") + more);
  }

 private:
  struct Item {
    std::string file;  // within the checkpoint's folder
    std::int64_t offset = 0, length = 0;
  };

  void read_storage(const PickledNode& storage) {
    for (const auto& [place, info] : storage.pairs()) {
      const std::string name = info.at("relative_path").text();
      if (!is_plain_name(name)) {
        info.refuse(fmt::format("'{}' is no name of a file in the folder", printable(name)));
      }
      const auto transforms = info.find("transform_descriptors");
      if (transforms && !transforms->is_none() && !transforms->list().empty()) {
        info.refuse("its bytes are transformed (compressed or the like), which is not supported");
      }
      const auto offset = place.find("offset");  // values that are no tensors have none
      items_[place.at("fqn").text()][!offset || offset->is_none() ? Sizes() : offset->sizes()] = {
          below_ + name, info.at("offset").whole(), info.at("length").whole()};
    }
  }

  void read_entry(const std::string& key, const Path& path, const PickledNode& description) {
    const bool is_tensor = description.is_object("torch.distributed.checkpoint.metadata.TensorStorageMetadata");
    const std::size_t size = path.size();
    const auto is_at = [&](std::size_t from_end, const char* word) {
      return size > from_end && path[size - 1 - from_end] == word;
    };
    if (is_at(2, "state") || path.back().starts_with("state.")) {
      // {'state': {parameter: {name: ...}}}, or flattened: {'state.PARAMETER.NAME': ...}
      const std::size_t dot = path.back().rfind('.');
      const std::string name = is_at(2, "state") ? path.back() : path.back().substr(dot + 1);
      const std::string parameter = is_at(2, "state") ? path[size - 2] : path.back().substr(6, dot > 6 ? dot - 6 : 0);
      if (name == "step") {
        tensors_.set_num_updates(number_in(key, description), metadata_.origin());
      } else if (is_tensor) {
        tensors_.add_state(name, parameter, tensor_of(key, description));
      }
    } else if (is_at(2, "param_groups")) {
      if (path.back() == "params") read_group(key, path[size - 2], description);
    } else if (path.back() == "last_epoch" && !is_tensor) {
      tensors_.checkpoint().num_advanced = static_cast<std::int64_t>(number_in(key, description));
    } else if (is_tensor && (size == 1 || is_model(path[size - 2]))) {
      tensors_.add_model(path.back(), tensor_of(key, description));
    } else if (!path.back().starts_with("param_groups.")) {
      left_.push_back(fmt::format("'{}'", printable(key)));
    }
  }

  // What programs call a model's state dict.
  static bool is_model(const std::string& word) {
    return word == "model" || word == "module" || word == "state_dict" || word == "model_state_dict" ||
           word == "model_state";
  }

  const Item& item_of(const std::string& key, const Sizes& offsets, const PickledNode& description) const {
    const auto parts = items_.find(key);
    if (parts == items_.end() || !parts->second.contains(offsets)) description.refuse("a part of it is stored nowhere");
    return parts->second.at(offsets);
  }

  // The item as a value, which torch.save wrote.
  PickledFile open(const std::string& key, const Item& item) {
    std::shared_ptr<const MappedFile>& file = files_[item.file];
    if (!file) {
      tensors_.add_file(item.file);
      file = std::make_shared<const MappedFile>(tensors_.folder() / item.file);
    }
    const auto size = static_cast<std::int64_t>(file->bytes().size());
    if (item.offset < 0 || item.length < 0 || item.offset > size || item.length > size - item.offset) {
      refuse_file(file->path().string(),
                  fmt::format("truncated: '{}' takes {} bytes from byte {} on, but the file has {}", printable(key),
                              item.length, item.offset, size));
    }
    return {file, static_cast<std::size_t>(item.offset), static_cast<std::size_t>(item.length),
            fmt::format("{}, '{}'", file->path().string(), printable(key))};
  }

  // A tensor of one element, or a number.
  double number_in(const std::string& key, const PickledNode& description) {
    const auto parts = items_.find(key);
    if (parts == items_.end()) description.refuse("it is stored nowhere");
    return open(key, parts->second.begin()->second).root().number();
  }

  void read_group(const std::string& key, const std::string& group, const PickledNode& description) {
    const auto place = parse_integer(group);
    if (!place || *place < 0 || *place > 1000) return;
    std::vector<std::vector<std::int64_t>>& groups = tensors_.checkpoint().groups;
    if (std::ssize(groups) <= *place) groups.resize(static_cast<std::size_t>(*place) + 1);
    const PickledFile file = open(key, item_of(key, {}, description));
    for (const PickledNode& parameter : file.root().list()) {
      if (const auto number = parse_integer(parameter.key_text()))
        groups[static_cast<std::size_t>(*place)].push_back(*number);
    }
  }

  StoredTensor tensor_of(const std::string& key, const PickledNode& description) {
    StoredTensor tensor;
    tensor.shape = description.at("size").sizes();
    if (!checked_numel(tensor.shape)) description.refuse("it has no possible shape");
    for (const PickledNode& chunk : description.at("chunks").list()) {
      const Sizes offsets = chunk.at("offsets").sizes(), sizes = chunk.at("sizes").sizes();
      const std::int64_t numel = checked_numel(sizes).value_or(-1);
      if (numel == 0) continue;
      const auto begin = flat_begin(tensor.shape, offsets, sizes);
      if (!begin || numel < 0) {
        refuse_file(metadata_.origin(),
                    fmt::format("tensor '{}': a part of {} at {} is no consecutive piece of {}: tensors that are "
                                "sharded over another dimension than the first are not supported",
                                printable(key), shape_text(sizes), shape_text(offsets), shape_text(tensor.shape)));
      }
      const Item& item = item_of(key, offsets, description);
      const PickledFile file = open(key, item);
      tensors_.add_records(item.file, file);
      const WeightEntry entry = file.root().tensor();
      if (entry.shape != sizes || (!tensor.parts.empty() && entry.type != tensor.type)) {
        throw UsageError(fmt::format("{}: '{}' is {}, but {} says {}", (tensors_.folder() / item.file).string(),
                                     printable(key), shape_text(entry.shape), kMetadata, shape_text(sizes)));
      }
      tensor.type = entry.type;
      tensor.parts.push_back({item.file, *begin, *begin + numel, entry.offset_bytes});
    }
    return tensor;
  }

  ForeignTensors& tensors_;
  std::string below_;
  PickledFile metadata_;
  std::map<std::string, std::map<Sizes, Item>> items_;  // by key, then by a part's place in the tensor
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
  std::vector<std::string> left_;
};

}  // namespace

bool is_dcp_folder(const fs::path& folder) {
  return has_file(folder, kMetadata);
}

ForeignCheckpoint open_dcp_folder(const fs::path& folder) {
  ForeignTensors tensors(folder);
  DcpFolder(tensors, "").read();
  return tensors.finish();
}

bool is_accelerate_folder(const fs::path& folder) {
  return has_file(folder / kFsdpModel, kMetadata);
}

ForeignCheckpoint open_accelerate_folder(const fs::path& folder) {
  ForeignTensors tensors(folder);
  DcpFolder(tensors, kFsdpModel).read();
  if (!has_file(folder / kFsdpOptimizer, kMetadata)) {
    throw UsageError(fmt::format("{}: {} is missing: a run that was saved without its optimizer cannot be resumed",
                                 folder.string(), kFsdpOptimizer));
  }
  DcpFolder(tensors, kFsdpOptimizer).read();
  read_trainer_progress(tensors);
  return tensors.finish();
}

}  // namespace tessera
