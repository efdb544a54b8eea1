// Ranks that are not alike are refused before training, with the first difference named.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel_faults/ranks.h"
#include "support/contains.h"

namespace tessera {
namespace {

// What may differ between two ranks.
struct Variant {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> parameters{{"weight", {3, 2}}, {"bias", {3}}};
  at::ScalarType type = at::kFloat;
  bool bias_is_trained = true;
  bool bias_decays = true;
  std::vector<std::string> units{"a", "b"};
  std::string kind = "Block";
  std::vector<std::int64_t> statistics{4};
  EngineOptions options = options_of("zero2");
};

struct VariedModel : torch::nn::Module {
  struct Block : torch::nn::Module {};

  explicit VariedModel(const Variant& how) {
    for (const char* name : {"a", "b", "c"}) {
      auto block = register_module(name, std::make_shared<Block>());
      for (const auto& [parameter, shape] : how.parameters) {
        const bool is_trained = parameter != "bias" || how.bias_is_trained;
        block->register_parameter(parameter, at::ones(shape, how.type), is_trained);
      }
      if (std::find(how.units.begin(), how.units.end(), name) != how.units.end()) {
        units.push_back({name, how.kind, block.get()});
      }
    }
    register_buffer("statistics", at::zeros(how.statistics));
    // In the requested order.
    std::sort(units.begin(), units.end(), [&](const Unit& a, const Unit& b) {
      const auto place = [&](const Unit& u) { return std::find(how.units.begin(), how.units.end(), u.name); };
      return place(a) < place(b);
    });
  }
  std::vector<Unit> units;
};

// What rank 1 of 3 says if only its variant is changed; the others name it.
std::string refusal_of(const std::function<void(Variant&)>& change) {
  const std::vector<std::string> messages = messages_of(3, [&](World& world) {
    Variant variant;
    if (world.rank() == 1) change(variant);
    if (!variant.bias_decays) {
      variant.options.is_exempt_from_decay = [](const std::string& name) { return name.ends_with("bias"); };
    }
    VariedModel model(variant);
    Engine engine(world, model, model.units, variant.options);
    world.all().barrier()->wait();
  });
  for (const int other : {0, 2})
    EXPECT_TRUE(contains(messages[static_cast<std::size_t>(other)], "rank 1 failed: "))
        << messages[static_cast<std::size_t>(other)];
  const std::string begin = "rank 1 does not hold rank 0's model, or spreads it differently: ";
  EXPECT_EQ(messages[1].rfind(begin, 0), 0u) << messages[1];
  return messages[1].substr(std::min(begin.size(), messages[1].size()));
}

TEST(Likeness, OfRanksThatAreAlikeIsNotDisputed) {
  for (const std::string& message : messages_of(3, [](World& world) {
         VariedModel model{Variant{}};
         Engine engine(world, model, model.units, Variant{}.options);
       })) {
    EXPECT_EQ(message, "");
  }
}

TEST(Likeness, NamesAShape) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.parameters[1].second = {4}; }),
            "parameter 1 is a.bias of shape [3], Float on cpu, trained, in unit 0 there, "
            "and a.bias of shape [4], Float on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesAName) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.parameters[1].first = "shift"; }),
            "parameter 1 is a.bias of shape [3], Float on cpu, trained, in unit 0 there, "
            "and a.shift of shape [3], Float on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesTheOrder) {
  EXPECT_EQ(refusal_of([](Variant& v) { std::swap(v.parameters[0], v.parameters[1]); }),
            "parameter 0 is a.weight of shape [3, 2], Float on cpu, trained, in unit 0 there, "
            "and a.bias of shape [3], Float on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesATypeOfParameters) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.type = at::kBFloat16; }),
            "parameter 0 is a.weight of shape [3, 2], Float on cpu, trained, in unit 0 there, "
            "and a.weight of shape [3, 2], BFloat16 on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesAFrozenParameter) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.bias_is_trained = false; }),
            "parameter 1 is a.bias of shape [3], Float on cpu, trained, in unit 0 there, "
            "and a.bias of shape [3], Float on cpu, frozen, in unit 0 here");
}

TEST(Likeness, NamesAParameterWithoutWeightDecay) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.bias_decays = false; }),
            "parameter 1 is a.bias of shape [3], Float on cpu, trained, in unit 0 there, "
            "and a.bias of shape [3], Float on cpu, trained without weight decay, in unit 0 here");
}

TEST(Likeness, NamesAParameterThatIsMissing) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.parameters.pop_back(); }),
            "parameter 1 is a.bias of shape [3], Float on cpu, trained, in unit 0 there, "
            "and b.weight of shape [3, 2], Float on cpu, trained, in unit 1 here");
}

TEST(Likeness, NamesAParameterTooMany) {
  EXPECT_EQ(refusal_of([](Variant& v) {
              v.parameters.push_back({"extra", {}});
            }),
            "parameter 2 is b.weight of shape [3, 2], Float on cpu, trained, in unit 1 there, "
            "and a.extra of shape [], Float on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesAnotherDivisionIntoUnits) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.units = {"a"}; }),
            "parameter 2 is b.weight of shape [3, 2], Float on cpu, trained, in unit 1 there, "
            "and b.weight of shape [3, 2], Float on cpu, trained, in the root here");
  EXPECT_EQ(refusal_of([](Variant& v) {
              v.units = {"b", "a"};
            }),
            "parameter 0 is a.weight of shape [3, 2], Float on cpu, trained, in unit 0 there, "
            "and b.weight of shape [3, 2], Float on cpu, trained, in unit 0 here");
}

TEST(Likeness, NamesAnotherKindOfUnit) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.kind = "Layer"; }), "unit 0 is a (Block) there, and a (Layer) here");
}

TEST(Likeness, NamesABuffer) {
  EXPECT_EQ(refusal_of([](Variant& v) { v.statistics = {5}; }),
            "buffer 0 is statistics of shape [4], Float on cpu there, and statistics of shape [5], Float on cpu here");
}

TEST(Likeness, NamesAnOption) {
  const std::vector<std::pair<std::function<void(EngineOptions&)>, std::string>> cases = {
      {[](EngineOptions& o) { o.spread.strategy = "full_shard"; }, "strategy is zero2 there, and full_shard"},
      {[](EngineOptions& o) { o.spread = SpreadOptions{.strategy = "zero2", .offload_optimizer = true}; },
       "offload_optimizer is false there, and true"},
      {[](EngineOptions& o) { o.types.compute = at::kBFloat16; }, "compute type is Float there, and BFloat16"},
      {[](EngineOptions& o) { o.types.reduce = at::kHalf; }, "reduce type is Float there, and Half"},
      {[](EngineOptions& o) { o.types.accumulates = true; }, "accumulates is false there, and true"},
      {[](EngineOptions& o) { o.spread.forward_prefetch = false; }, "forward_prefetch is true there, and false"},
      {[](EngineOptions& o) { o.spread.backward_prefetch = BackwardPrefetch::kPost; },
       "backward_prefetch is backward_pre there, and backward_post"},
      {[](EngineOptions& o) { o.spread.sync_module_states = false; }, "sync_module_states is true there, and false"},
      {[](EngineOptions& o) { o.device = at::kCPU; }, "device is that of the parameters there, and cpu"},
      {[](EngineOptions& o) { o.host_memory_is_separate = true; }, "host_memory_is_separate is false there, and true"},
  };
  for (const auto& [change, difference] : cases) {
    EXPECT_EQ(refusal_of([&](Variant& v) { change(v.options); }), "option " + difference + " here");
  }
}

// A unit without parameters of its own shows only in the list.
TEST(Likeness, NamesWhatOnlyOneRankHas) {
  const auto refusal = [](bool first_has_more) {
    return messages_of(2, [&](World& world) {
      torch::nn::Module model;
      model.register_parameter("weight", at::ones({2}));
      const auto empty = model.register_module("empty", std::make_shared<VariedModel::Block>());
      const bool has_it = (world.rank() == 0) == first_has_more;
      Engine engine(world, model, has_it ? std::vector<Unit>{{"empty", "Block", empty.get()}} : std::vector<Unit>{},
                    options_of("ddp"));
    })[1];
  };
  EXPECT_TRUE(contains(refusal(true), "unit 0 is empty (Block) there, and missing here")) << refusal(true);
  EXPECT_TRUE(contains(refusal(false), "unit 0 is missing there, and empty (Block) here")) << refusal(false);
}

}  // namespace
}  // namespace tessera
