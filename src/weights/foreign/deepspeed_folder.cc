#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "weights/foreign/foreign_tensors.h"
#include "weights/foreign/pickled_file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLatest = "latest";
constexpr const char* kModelStates = "mp_rank_00_model_states.pt";                  // of ZeRO 1 and 2
constexpr const char* kModelStates3 = "zero_pp_rank_0_mp_rank_00_model_states.pt";  // of ZeRO 3
constexpr const char* kMasters = "";  // beside the names of the optimizer's states
constexpr std::int64_t kMaxPadding = 1 << 20;

bool has_model_states(const fs::path& folder) {
  return has_file(folder, kModelStates) || has_file(folder, kModelStates3);
}

// The folder of the states within `folder`: "", or "global_step5/".
std::string tag_of(const fs::path& folder) {
  if (has_model_states(folder)) return "";
  const std::string tag(trim(read_file(folder / kLatest)));
  if (!is_plain_name(tag)) {
    refuse_file((folder / kLatest).string(), fmt::format("'{}' is no name of a folder beside it", printable(tag)));
  }
  if (!has_model_states(folder / tag)) {
    throw UsageError(fmt::format("{} names {}, which has neither {} nor {}", (folder / kLatest).string(),
                                 printable(tag), kModelStates, kModelStates3));
  }
  return tag + "/";
}

std::int64_t numel_of(const StoredTensor& tensor) {
  return tensor.parts.empty() ? 0 : tensor.parts.back().end;
}

// Appends elements [begin, begin + numel) of a flat tensor, which must be there.
void append(StoredTensor& tensor, const StoredTensor& flat, std::int64_t begin, std::int64_t numel) {
  for (const StoredPart& part : flat.parts) {
    const std::int64_t from = std::max(begin, part.begin), until = std::min(begin + numel, part.end);
    if (from >= until) continue;
    const std::int64_t done = numel_of(tensor);
    tensor.parts.push_back(
        {part.file, done, done + until - from, part.offset + (from - part.begin) * bytes_of(flat.type)});
  }
}

// Of one group of parameters, flat: the float32 parameters under kMasters, and states by name.
using FlatStates = std::map<std::string, StoredTensor>;

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0, padding = 0;  // after it in the group
};

class DeepSpeedFolder {
 public:
  explicit DeepSpeedFolder(const fs::path& folder) : tensors_(folder), tag_(tag_of(folder)) {
    refuse_unknown_files();
    model_name_ = tag_ + (has_file(folder / tag_, kModelStates) ? kModelStates : kModelStates3);
    model_ = tensors_.open(model_name_);
  }

  ForeignCheckpoint read() {
    const PickledNode root = model_->root();
    if (!root.find("param_shapes") || root.at("param_shapes").is_none()) {
      root.refuse("it has no 'param_shapes': only checkpoints of ZeRO 1, 2 and 3 are supported");
    }
    if (const auto tensor_parallel = root.find("mp_world_size"); tensor_parallel && tensor_parallel->whole() > 1) {
      root.refuse("tensor parallelism is not supported");
    }
    read_progress(root);
    open_ranks(root.at("dp_world_size").whole());
    const PickledNode first = optimizer_of(0);
    const auto stage = first.find("zero_stage");  // BF16_Optimizer, a kind of stage 1, does not say it
    read_parameters(root, first);
    stage && stage->whole() == 3 ? read_stage_3() : read_stage_1_or_2();
    read_rest_of_model(root, stage && stage->whole() == 3);
    read_scale(first);
    // Fused optimizers count elsewhere; a step that is not skipped is an update.
    tensors_.checkpoint().index.numbers.try_emplace(kNumUpdates, *tensors_.checkpoint().num_advanced);
    read_trainer_progress(tensors_);
    return tensors_.finish();
  }

 private:
  fs::path folder() const { return tensors_.folder() / tag_; }

  void refuse_unknown_files() const {
    for (const auto& entry : fs::directory_iterator(folder())) {
      const std::string name = entry.path().filename().string();
      const bool is_model_parallel =
          name.find("mp_rank_") != std::string::npos && name.find("mp_rank_00") == std::string::npos;
      if (is_model_parallel) refuse_file(entry.path().string(), "tensor parallelism is not supported");
      if (name.find("expert_") != std::string::npos) refuse_file(entry.path().string(), "experts are not supported");
      if (name.starts_with("layer_")) refuse_file(entry.path().string(), "pipeline parallelism is not supported");
    }
  }

  void read_progress(const PickledNode& root) {
    ForeignCheckpoint& checkpoint = tensors_.checkpoint();
    checkpoint.index.step = root.at("global_steps").whole();
    const auto skipped = root.find("skipped_steps");
    checkpoint.num_advanced = checkpoint.index.step - (skipped ? skipped->whole() : 0);
  }

  void open_ranks(std::int64_t num_ranks) {
    if (num_ranks < 1 || num_ranks > 1'000'000) model_->root().refuse("'dp_world_size' is no number of ranks");
    for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
      const std::string name = fmt::format("zero_pp_rank_{}_mp_rank_00_optim_states.pt", rank);
      rank_names_.push_back(tag_ + (has_file(folder(), "bf16_" + name) ? "bf16_" : "") + name);
      ranks_.push_back(tensors_.open(rank_names_.back()));
    }
  }

  PickledNode optimizer_of(std::size_t rank) const { return ranks_[rank]->root().at("optimizer_state_dict"); }

  void read_parameters(const PickledNode& root, const PickledNode& optimizer) {
    const auto paddings = optimizer.find("param_alignment_paddings");
    for (const PickledNode& shapes : root.at("param_shapes").list()) {
      std::vector<Parameter>& group = groups_.emplace_back();
      for (const auto& [name, shape] : shapes.entries()) {
        const auto numel = checked_numel(shape.sizes());
        if (!numel) shape.refuse("it has no possible shape");
        group.push_back({name, shape.sizes(), *numel, 0});
      }
      if (!paddings || paddings->is_none()) continue;
      const std::vector<PickledNode> of_group = paddings->item(groups_.size() - 1).list();
      if (of_group.size() != group.size()) paddings->refuse("they do not fit the parameters");
      for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].padding = of_group[i].whole();
        if (group[i].padding < 0 || group[i].padding > kMaxPadding) of_group[i].refuse("no possible padding");
      }
    }
  }

  // The states of one flat tensor, `masters` of them the parameters.
  void add_states(FlatStates& flat, const PickledNode& masters, const PickledNode& states, std::size_t rank) {
    const auto add = [&](const std::string& name, const PickledNode& value) {
      StoredTensor& whole = flat[name];
      const WeightEntry entry = value.tensor();
      const std::int64_t begin = numel_of(whole);
      if (begin > 0 && entry.type != whole.type) value.refuse("it has another type than other ranks'");
      whole.type = entry.type;
      whole.parts.push_back({rank_names_[rank], begin, begin + entry.numel, entry.offset_bytes});
    };
    add(kMasters, masters);
    for (const auto& [name, value] : states.entries()) {
      if (name == "step") {
        tensors_.set_num_updates(value.number(), (tensors_.folder() / rank_names_[rank]).string());
      } else if (!value.is_none()) {
        add(name, value);
      }
    }
  }

  // The optimizer's states of flat tensor `index`: its state dict numbers them through all groups, or, if the
  // checkpoint is 'elastic', it is a list.
  static PickledNode states_of(const PickledNode& base, std::size_t index) {
    if (!base.is_dict()) return base.item(index);
    std::size_t before = 0;
    for (const PickledNode& group : base.at("param_groups").list()) {
      const std::vector<PickledNode> numbers = group.at("params").list();
      if (index < before + numbers.size()) return base.at("state").entry(numbers[index - before].key_text());
      before += numbers.size();
    }
    base.refuse(fmt::format("it has states of {} flat tensors, expected at least {}", before, index + 1));
  }

  void add_tensor(const std::string& state, const Parameter& parameter, StoredTensor tensor) {
    if (state == kMasters) {
      tensors_.add_model(parameter.name, std::move(tensor));
    } else {
      tensors_.add_state(state, parameter.name, std::move(tensor));
    }
  }

  void check_size(const Parameter& parameter, const StoredTensor& flat, std::int64_t needed) const {
    if (needed <= numel_of(flat)) return;
    refuse_file(folder().string(),
                fmt::format("tensor '{}' does not fit: the ranks' partitions have {} elements, {} are needed",
                            printable(parameter.name), numel_of(flat), needed));
  }

  // A group's parameters follow each other in the partitions of rank 0, rank 1...; at the end is padding.
  void read_stage_1_or_2() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      FlatStates flat;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const PickledNode optimizer = optimizer_of(rank);
        const PickledNode masters = optimizer.at("single_partition_of_fp32_groups").item(g);
        add_states(flat, masters, states_of(optimizer.at("base_optimizer_state"), g), rank);
      }
      std::int64_t at = 0;
      for (const Parameter& parameter : groups_[g]) {
        for (const auto& [state, whole] : flat) {
          check_size(parameter, whole, at + parameter.numel);
          StoredTensor tensor{whole.type, parameter.shape, {}};
          append(tensor, whole, at, parameter.numel);
          add_tensor(state, parameter, std::move(tensor));
        }
        at += parameter.numel + parameter.padding;
      }
    }
  }

  // Each parameter is cut into equal parts, one per rank, the last padded. A rank's parts follow each other through its
  // flat tensors.
  void read_stage_3() {
    std::vector<FlatStates> ranks(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const PickledNode optimizer = optimizer_of(rank);
      const auto masters = optimizer.at("fp32_flat_groups").list();
      for (std::size_t i = 0; i < masters.size(); ++i) {
        add_states(ranks[rank], masters[i], states_of(optimizer.at("optimizer_state_dict"), i), rank);
      }
    }
    if (ranks[0].empty()) optimizer_of(0).refuse("'fp32_flat_groups' is empty");
    const auto num_ranks = static_cast<std::int64_t>(ranks.size());
    std::int64_t at = 0;
    for (const std::vector<Parameter>& group : groups_) {
      for (const Parameter& parameter : group) {
        const std::int64_t part = (parameter.numel + num_ranks - 1) / num_ranks;
        for (const auto& [state, first] : ranks[0]) {
          StoredTensor tensor{first.type, parameter.shape, {}};
          for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
            const StoredTensor& own = ranks[static_cast<std::size_t>(rank)][state];
            check_size(parameter, own, at + part);
            append(tensor, own, at, std::clamp<std::int64_t>(parameter.numel - rank * part, 0, part));
          }
          add_tensor(state, parameter, std::move(tensor));
        }
        at += part;
      }
    }
  }

  // Buffers, and parameters that are not trained.
  void read_rest_of_model(const PickledNode& root, bool is_stage_3) {
    std::vector<std::string> wanted;
    for (const PickledNode& name : root.at("buffer_names").list()) wanted.push_back(name.text());
    if (const auto frozen = root.find("frozen_param_shapes"); frozen && frozen->is_dict()) {
      for (const auto& [name, shape] : frozen->entries()) {
        if (is_stage_3) shape.refuse("parameters that are not trained are not supported with ZeRO 3");
        wanted.push_back(name);
      }
    }
    for (const std::string& name : wanted) {
      tensors_.add_model(name, ForeignTensors::stored(model_name_, root.at("module").at(name).tensor()));
    }
  }

  // float32 and bfloat16 runs have one too, which is 1 and means nothing.
  void read_scale(const PickledNode& optimizer) {
    const auto dynamic = optimizer.find("dynamic_loss_scale"), scaler = optimizer.find("loss_scaler");
    if (!scaler || scaler->is_none()) return;
    const double scale = scaler->at("cur_scale").number();
    const bool is_dynamic = dynamic && dynamic->whole() != 0;
    if (!is_dynamic && scale == 1) return;
    tensors_.add_number(kLossScale, scale);
    if (!is_dynamic) return;
    tensors_.add_number(kNumCleanSteps,
                        scaler->at("cur_iter").number() - scaler->at("last_overflow_iter").number() - 1);
    tensors_.add_number(kHysteresis, scaler->at("cur_hysteresis").number());
  }

  ForeignTensors tensors_;
  std::string tag_, model_name_;
  std::unique_ptr<PickledFile> model_;
  std::vector<std::unique_ptr<PickledFile>> ranks_;
  std::vector<std::string> rank_names_;
  std::vector<std::vector<Parameter>> groups_;
};

}  // namespace

bool is_deepspeed_folder(const fs::path& folder) {
  return has_model_states(folder) || has_file(folder, kLatest);
}

ForeignCheckpoint open_deepspeed_folder(const fs::path& folder) {
  return DeepSpeedFolder(folder).read();
}

}  // namespace tessera
