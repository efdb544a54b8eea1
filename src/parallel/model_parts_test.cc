#include "parallel/model_parts.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "core/error.h"

namespace tessera {
namespace {

struct SmallBlock : torch::nn::Module {
  SmallBlock() { linear = register_module("linear", torch::nn::Linear(4, 4)); }
  torch::nn::Linear linear{nullptr};
};

struct Tower : torch::nn::Module {
  Tower() {
    first = register_module("first", std::make_shared<SmallBlock>());
    second = register_module("second", std::make_shared<SmallBlock>());
    head = register_module("head", torch::nn::Linear(4, 100));
  }
  std::shared_ptr<SmallBlock> first, second;
  torch::nn::Linear head{nullptr};
};

std::vector<std::string> names_of(const std::vector<Unit>& units) {
  std::vector<std::string> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(SelectUnits, PicksOfTheModelsOwnList) {
  Tower tower;
  const std::vector<Unit> list{{"first", "BloomBlock", tower.first.get()}, {"head", "Head", tower.head.get()}};
  EXPECT_EQ(names_of(select_units(list, {})), (Names{"first", "head"}));
  EXPECT_EQ(names_of(select_units(list, {.kinds = {"transformers.models.bloom.BloomBlock"}})), (Names{"first"}));
  EXPECT_EQ(names_of(select_units(list, {.kinds = {}, .min_num_parameters = 21})), (Names{"head"}));
  EXPECT_THROW(select_units(list, {.kinds = {"Block"}}), UsageError);
}

}  // namespace
}  // namespace tessera
