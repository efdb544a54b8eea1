#include "parallel/model_likeness.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

// One thing that must be alike: what it is called on every rank, and what this rank has there.
struct Feature {
  std::string what, value;
};
using Features = std::vector<Feature>;

const char* name_of(BackwardPrefetch prefetch) {
  switch (prefetch) {
    case BackwardPrefetch::kPre:
      return "pre";
    case BackwardPrefetch::kPost:
      return "post";
    default:
      return "none";
  }
}

const char* name_of(BufferRule rule) {
  switch (rule) {
    case BufferRule::kBroadcast:
      return "broadcast";
    case BufferRule::kAverage:
      return "average";
    default:
      return "local";
  }
}

void add_options(const EngineOptions& options, Features& features) {
  const auto add = [&](const char* what, const auto& value) {
    features.push_back({fmt::format("option {}", what), fmt::format("{}", value)});
  };
  add("strategy", options.placement.strategy);
  add("offload_optimizer", options.placement.offload_optimizer);
  add("offload_parameters", options.placement.offload_parameters);
  add("delayed_update", options.placement.delayed_update);
  add("compute type", c10::toString(options.types.compute));
  add("reduce type", c10::toString(options.types.reduce));
  add("accumulates", options.types.accumulates);
  add("forward_prefetch", options.forward_prefetch);
  add("backward_prefetch", name_of(options.backward_prefetch));
  add("sync_module_states", options.sync_module_states);
  add("buffers", name_of(options.buffers));
  add("device", options.device ? c10::DeviceTypeName(options.device->type(), true) : "that of the parameters");
  add("host_is_apart", options.host_is_apart);
}

const char* name_of(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kDecaying:
      return "trained";
    case ParameterGroup::kPlain:
      return "trained without weight decay";
    default:
      return "frozen";
  }
}

std::string describe(const std::string& name, const at::Tensor& tensor) {
  return fmt::format("{} of shape [{}], {} on {}", name, fmt::join(tensor.sizes(), ", "),
                     c10::toString(tensor.scalar_type()), c10::DeviceTypeName(tensor.device().type(), true));
}

void add_parameters(const std::vector<std::vector<UnitParameter>>& parameters_of_unit, Features& features) {
  std::size_t index = 0;
  for (std::size_t unit = 0; unit < parameters_of_unit.size(); ++unit) {
    const bool is_root = unit + 1 == parameters_of_unit.size();
    for (const UnitParameter& p : parameters_of_unit[unit]) {
      features.push_back({fmt::format("parameter {}", index++),
                          fmt::format("{}, {}, in {}", describe(p.name, p.parameter), name_of(p.group),
                                      is_root ? "the root" : fmt::format("unit {}", unit))});
    }
  }
}

void add_units(const std::vector<Unit>& units, Features& features) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    features.push_back({fmt::format("unit {}", i), fmt::format("{} ({})", units[i].name, units[i].kind)});
  }
}

void add_buffers(const torch::nn::Module& model, Features& features) {
  std::size_t index = 0;
  for (const auto& item : model.named_buffers()) {
    features.push_back({fmt::format("buffer {}", index++),
                        item.value().defined() ? describe(item.key(), item.value()) : item.key() + ", undefined"});
  }
}

std::string to_text(const Features& features) {
  Json json = Json::array();
  for (const Feature& f : features) json.push_back(Json::array({f.what, f.value}));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Features from_text(const std::string& text) {
  Features features;
  for (const Json& item : parse_json(text, "rank 0's model")) features.push_back({item.at(0), item.at(1)});
  return features;
}

std::string broadcast_text(World& world, const std::string& text) {
  at::Tensor length = at::tensor({static_cast<std::int64_t>(text.size())}, at::kLong).to(world.device());
  world.all().broadcast(length, 0, "model structure")->wait();
  at::Tensor bytes = at::empty({length.item<std::int64_t>()}, at::dtype(at::kByte).device(world.device()));
  if (world.rank() == 0) {
    at::Tensor own = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
    std::memcpy(own.data_ptr(), text.data(), text.size());
    bytes.copy_(own);
  }
  world.all().broadcast(bytes, 0, "model structure")->wait();
  const at::Tensor host = bytes.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), static_cast<std::size_t>(host.numel())};
}

// Features come in sections (options, parameters, units, buffers), numbered within one: where one rank has fewer of
// a kind, what stands in that place is of the next kind, and what is missing is told by the one that has it.
std::string difference(const Feature* there, const Feature* here) {
  if (there != nullptr && here != nullptr && there->what == here->what)
    return fmt::format("{} is {} there, and {} here", there->what, there->value, here->value);
  const std::string kinds = "option parameter unit buffer";
  const auto place = [&](const Feature* f) {
    return f == nullptr ? std::string::npos : kinds.find(f->what.substr(0, f->what.find(' ')));
  };
  if (place(there) < place(here)) return fmt::format("{} is {} there, and missing here", there->what, there->value);
  return fmt::format("{} is missing there, and {} here", here->what, here->value);
}

void compare(World& world, const Features& own) {
  const Features theirs = from_text(broadcast_text(world, to_text(own)));
  for (std::size_t i = 0; i < theirs.size() || i < own.size(); ++i) {
    const Feature* there = i < theirs.size() ? &theirs[i] : nullptr;
    const Feature* here = i < own.size() ? &own[i] : nullptr;
    if (there != nullptr && here != nullptr && there->what == here->what && there->value == here->value) continue;
    throw Error(fmt::format("rank {} does not hold the model that rank 0 holds, or does not spread it alike: {}",
                            world.rank(), difference(there, here)),
                ExitStatus::kRendezvous);
  }
}

}  // namespace

void check_alike(World& world, const torch::nn::Module& model, const std::vector<Unit>& units,
                 const EngineOptions& options, const std::vector<std::vector<UnitParameter>>& parameters_of_unit) {
  if (world.size() == 1) return;
  Features features;
  add_options(options, features);
  add_parameters(parameters_of_unit, features);
  add_units(units, features);
  add_buffers(model, features);
  compare(world, features);
}

}  // namespace tessera
