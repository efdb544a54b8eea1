#include "weights/load_weights.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "kernels/device_fill.h"
#include "kernels/parallel.h"
#include "model/language_model.h"
#include "weights/damaged_values.h"
#include "weights/mapped_file.h"
#include "weights/weights.h"

namespace tessera {

namespace {

// One tensor of the model with all its names.
struct Target {
  std::vector<std::string> names;
  at::Tensor tensor;
  bool is_buffer = false;
  const WeightEntry* source = nullptr;
};

std::vector<Target> targets_of(torch::nn::Module& module) {
  std::vector<Target> targets;
  std::unordered_map<const void*, std::size_t> known;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, bool is_buffer) {
    if (!tensor.defined()) return;
    const auto [place, is_new] = known.try_emplace(tensor.unsafeGetTensorImpl(), targets.size());
    if (is_new) targets.push_back({{}, tensor, is_buffer, nullptr});
    targets[place->second].names.push_back(name);
  };
  for (const auto& item : module.named_parameters()) add(item.key(), item.value(), false);
  for (const auto& item : module.named_buffers()) add(item.key(), item.value(), true);
  return targets;
}

// Finds each name's tensor in the file and remembers which of the file's tensors are used.
class Matcher {
 public:
  Matcher(const Weights& weights, const LoadOptions& options) : weights_(weights), options_(options) {}

  void match(Target& target) {
    for (const std::string& name : target.names) take(target, name, /*is_alias=*/false);
    for (const auto& [alias, name] : options_.ties) {
      if (std::ranges::find(target.names, name) != target.names.end()) take(target, alias, /*is_alias=*/true);
    }
  }

  // Tensors that the model ties and the file does not.
  const std::vector<std::string>& untied() const { return untied_; }

  std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (const WeightEntry& entry : weights_.entries()) {
      if (!used_.contains(&entry) && !is_ignored(entry.name)) names.push_back(entry.name);
    }
    return names;
  }

 private:
  void take(Target& target, const std::string& name, bool is_alias) {
    const WeightEntry* entry = find(name);
    if (entry == nullptr) return;
    used_.insert(entry);
    if (target.source == nullptr) target.source = entry;
    if (entry == target.source || same_values(*entry, *target.source)) return;
    if (is_alias) {
      untied_.push_back(fmt::format("{} and {}", target.source->name, entry->name));
      return;
    }
    log_warn("{}: '{}' and '{}' differ, but the model ties them: '{}' is used",
             weights_.files().front()->path().string(), printable(target.source->name), printable(entry->name),
             printable(target.source->name));
  }

  bool is_ignored(const std::string& name) const {
    return std::ranges::any_of(
        options_.ignored, [&](const std::string& ending) { return name == ending || name.ends_with("." + ending); });
  }

  const WeightEntry* find(const std::string& name) const {
    const std::string& prefix = options_.base_model_prefix;
    const WeightEntry* entry = weights_.find(name);
    if (entry != nullptr || prefix.empty()) return entry;
    return name.starts_with(prefix + ".") ? weights_.find(std::string_view(name).substr(prefix.size() + 1))
                                          : weights_.find(prefix + "." + name);
  }

  bool same_values(const WeightEntry& a, const WeightEntry& b) const {
    if (a.shape != b.shape || a.type != b.type) return false;
    if (a.file == b.file && a.offset_bytes == b.offset_bytes && a.strides == b.strides) return true;
    return at::equal(tensor_of(weights_, a), tensor_of(weights_, b));
  }

  const Weights& weights_;
  const LoadOptions& options_;
  std::unordered_set<const WeightEntry*> used_;
  std::vector<std::string> untied_;
};

// All mistakes in one message: users fix a name mapping once, not tensor by tensor.
void check_fit(const std::vector<Target>& targets, const Matcher& matcher, const Weights& weights) {
  std::vector<std::string> missing, misshapen, of_other_kind;
  for (const Target& target : targets) {
    if (target.source == nullptr) {
      if (!target.names.front().ends_with("num_batches_tracked")) missing.push_back(target.names.front());
    } else if (target.tensor.sizes() != at::IntArrayRef(target.source->shape)) {
      misshapen.push_back(fmt::format("{} ({} in the file, {} in the model)", target.source->name,
                                      shape_text(target.source->shape), shape_text(target.tensor.sizes().vec())));
    } else if (is_floating(target.source->type) != target.tensor.is_floating_point()) {
      of_other_kind.push_back(fmt::format("{} ({} in the file, {} in the model)", target.source->name,
                                          torch_name(target.source->type),
                                          torch_name(weight_type(target.tensor.scalar_type()))));
    }
  }
  const std::vector<std::string> left = matcher.left_over();
  std::vector<std::string> mistakes;
  if (!missing.empty()) mistakes.push_back(fmt::format("missing in the file: {}", listed(missing)));
  if (!left.empty()) mistakes.push_back(fmt::format("unknown to the model: {}", listed(left)));
  if (!misshapen.empty()) mistakes.push_back(fmt::format("of another shape: {}", listed(misshapen)));
  if (!matcher.untied().empty()) {
    // transformers 4 takes the embedding for both, transformers 5 keeps both.
    mistakes.push_back(
        fmt::format("tied in the model, but different in the file: {} (\"tie_word_embeddings\": false "
                    "in config.json keeps both)",
                    listed(matcher.untied())));
  }
  // Numbers that were quantised mean nothing without their scales.
  if (!of_other_kind.empty()) mistakes.push_back(fmt::format("of another kind of number: {}", listed(of_other_kind)));
  if (mistakes.empty()) return;
  throw UsageError(fmt::format("{}: the weights do not fit the model: {}", weights.files().front()->path().string(),
                               join(mistakes, "; ")));
}

Look look_for(const Target& target, DamageReport& damage) {
  return [&damage, &source = *target.source, is_buffer = target.is_buffer](const char* bytes, std::int64_t num_bytes) {
    damage.look_at(source, bytes, num_bytes / bytes_of(source.type), is_buffer);
  };
}

void send_to_device(const Target& target, const Weights& weights, DamageReport& damage) {
  constexpr std::int64_t kPieceBytes = 4 << 20;
  const WeightEntry& source = *target.source;
  const MappedFile& file = *weights.files()[source.file];
  const std::int64_t element = bytes_of(source.type);
  kernels::fill_device(target.tensor.detach().view({-1}), scalar_type(source.type), kPieceBytes / element,
                       [&](std::int64_t begin, const at::Tensor& piece) {
                         copy_from_file({&file, source.offset_bytes + begin * element, piece.numel() * element,
                                         static_cast<char*>(piece.mutable_data_ptr()), look_for(target, damage)});
                       });
}

// To another type or device: in pieces, so that the file's pages are released one after another.
void convert(const Target& target, const Weights& weights, DamageReport& damage) {
  constexpr std::int64_t kPieceNumel = 256 << 10;  // fits into a core's own cache, and is looked at before it is read
  const WeightEntry& source = *target.source;
  const MappedFile& file = *weights.files()[source.file];
  if (!target.tensor.is_contiguous() || !source.is_contiguous()) {
    const at::Tensor values = tensor_of(weights, source).contiguous();
    damage.look_at(source, static_cast<const char*>(values.const_data_ptr()), source.numel, target.is_buffer);
    target.tensor.copy_(values);
    file.forget(source.offset_bytes, source.num_bytes());
    return;
  }
  if (target.tensor.is_cuda()) return send_to_device(target, weights, damage);
  const at::Tensor from = tensor_of(weights, source).view({-1}), to = target.tensor.detach().view({-1});
  kernels::parallel_parts(0, source.numel, kPieceNumel, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t offset = source.offset_bytes + begin * bytes_of(source.type);
    const std::int64_t num_bytes = (end - begin) * bytes_of(source.type);
    file.expect(offset, num_bytes);
    damage.look_at(source, file.bytes().data() + offset, end - begin, target.is_buffer);
    to.slice(0, begin, end).copy_(from.slice(0, begin, end));
    file.forget(offset, num_bytes);
  });
}

bool is_plain_copy(const Target& target) {
  return target.tensor.device().is_cpu() && target.tensor.is_contiguous() && target.source->is_contiguous() &&
         target.tensor.scalar_type() == scalar_type(target.source->type);
}

CopyJob plain_copy(const Target& target, const Weights& weights, DamageReport& damage) {
  const WeightEntry& source = *target.source;
  return {weights.files()[source.file].get(), source.offset_bytes, source.num_bytes(),
          static_cast<char*>(target.tensor.mutable_data_ptr()), look_for(target, damage)};
}

// Every tensor of the module with its source in the file.
std::vector<Target> matched(torch::nn::Module& module, const Weights& weights, const LoadOptions& options) {
  std::vector<Target> targets = targets_of(module);
  Matcher matcher(weights, options);
  for (Target& target : targets) matcher.match(target);
  check_fit(targets, matcher, weights);
  return targets;
}

void fill_targets(const std::vector<Target>& targets, const Weights& weights) {
  const at::NoGradGuard no_gradients;
  DamageReport damage(weights);
  std::vector<CopyJob> plain;
  for (const Target& target : targets) {
    if (target.source == nullptr) continue;
    is_plain_copy(target) ? plain.push_back(plain_copy(target, weights, damage)) : convert(target, weights, damage);
  }
  copy_from_files(plain);
  damage.finish();
}

// Uninitialised. If libtorch runs out of memory, the error says how large the config's model is.
std::shared_ptr<LanguageModel> make_model(const ModelFolder& folder, const at::TensorOptions& options) {
  const std::string origin = (folder.path() / "config.json").string();
  try {
    return make_language_model(folder.config(), origin, options);
  } catch (const c10::Error& error) {
    double numel = 0;
    const auto sizes_alone = make_language_model(folder.config(), origin, at::device(at::kMeta));
    for (const at::Tensor& parameter : sizes_alone->parameters()) numel += static_cast<double>(parameter.numel());
    throw Error(fmt::format("{}: a model of {:.0f} parameters, {:.1f} GiB, does not fit into memory: {}", origin, numel,
                            numel * static_cast<double>(options.dtype().itemsize()) / (1 << 30),
                            error.what_without_backtrace()));
  }
}

}  // namespace

LoadOptions load_options_of(const LanguageModel& model) {
  return {model.base_prefix(), model.tied_names(), model.old_buffers()};
}

void load_weights(torch::nn::Module& module, const Weights& weights, const LoadOptions& options) {
  fill_targets(matched(module, weights, options), weights);
}

WeightSource::WeightSource(torch::nn::Module& module, const Weights& weights, const LoadOptions& options)
    : weights_(weights) {
  for (const Target& target : matched(module, weights, options)) {
    for (const std::string& name : target.names) source_of_[name] = {target.source, target.is_buffer};
  }
}

void WeightSource::fill(const std::string& name, const at::Tensor& values) const {
  const auto found = source_of_.find(name);
  if (found == source_of_.end() || found->second.entry == nullptr) {
    throw UsageError(fmt::format("{}: no tensor for '{}'", weights_.files().front()->path().string(), printable(name)));
  }
  fill_targets({{{name}, values, found->second.is_buffer, found->second.entry}}, weights_);
}

void check_is_language_model(const ModelFolder& folder) {
  make_language_model(folder.config(), (folder.path() / "config.json").string(), at::device(at::kMeta));
}

std::shared_ptr<LanguageModel> load_language_model(const ModelFolder& folder, const at::TensorOptions& options) {
  auto model = make_model(folder, options);
  load_weights(*model, Weights::open(folder.path()), load_options_of(*model));
  model->eval();
  return model;
}

}  // namespace tessera
