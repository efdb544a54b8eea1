// How a config.json describes rotary positions, in the forms of transformers 4 and 5.
#include <fmt/format.h>

#include <cmath>

#include "model/families/family.h"

namespace tessera {
namespace {

constexpr double kMostFactor = 1e6, kMostTheta = 1e15;

struct RopeReader {
  const JsonReader& config;
  const std::optional<JsonReader>& values;  // "rope_parameters", or "rope_scaling"; none: plain
  const RotaryDefaults& defaults;

  double real(const char* key, double low, double high, double preset) const {
    return values ? values->real({key}, low, high, preset) : preset;
  }
  double required(const char* key) const {
    values->at(key);
    return values->real({key}, 1e-6, kMostFactor);
  }
  double max_positions() const {
    return config.real({"max_position_embeddings"}, 1, 1e12, static_cast<double>(defaults.max_positions));
  }
  // The config's own key wins over the one beside the factor.
  double original_positions() const {
    constexpr const char* kKey = "original_max_position_embeddings";
    const double usual =
        defaults.may_be_partial ? static_cast<double>(defaults.max_positions) : real(kKey, 1, 1e12, max_positions());
    return config.real({kKey}, 1, 1e12, usual);
  }
};

// Values by kinds of layers would be passed over as unknown keys.
void check_is_flat(const JsonReader& values) {
  for (const auto& [name, value] : values.members()) {
    if (value.is_object()) value.refuse("this family has the same rotary positions in all layers");
  }
}

RotaryKind kind_of(const RopeReader& rope) {
  if (!rope.values) return RotaryKind::kPlain;
  const char* key = rope.values->has("rope_type") ? "rope_type" : "type";
  const std::string name = rope.values->text(key, "default");
  if (name == "default") return RotaryKind::kPlain;
  if (rope.defaults.may_be_partial) {
    if (name == "longrope" || name == "su" || name == "yarn") return RotaryKind::kLongRope;
    rope.values->at(key).refuse_value("default or longrope");
  }
  if (name == "linear") return RotaryKind::kLinear;
  if (name == "dynamic") return RotaryKind::kDynamic;
  if (name == "llama3") return RotaryKind::kLlama3;
  if (name == "yarn") return RotaryKind::kYarn;
  if (name == "longrope") return RotaryKind::kLongRope;
  rope.values->at(key).refuse_value("default, linear, dynamic, llama3, yarn or longrope");
}

void read_llama3(const RopeReader& rope, Rotary& rotary) {
  rotary.factor = rope.required("factor");
  rotary.original_positions = rope.original_positions();
  rotary.low_frequency_factor = rope.required("low_freq_factor");
  rotary.high_frequency_factor = rope.required("high_freq_factor");
  if (rotary.high_frequency_factor <= rotary.low_frequency_factor) {
    rope.values->at("high_freq_factor").refuse_value("a number above low_freq_factor");
  }
}

void read_yarn(const RopeReader& rope, Rotary& rotary) {
  rotary.original_positions = rope.original_positions();
  rotary.factor = rope.real("factor", 1e-6, kMostFactor, rope.max_positions() / rotary.original_positions);
  const auto magnitude = [&](double weight) {
    return rotary.factor <= 1 ? 1 : 0.1 * weight * std::log(rotary.factor) + 1;
  };
  const double scale = rope.real("mscale", 0, kMostFactor, 0), of_all = rope.real("mscale_all_dim", 0, kMostFactor, 0);
  const double usual = scale > 0 && of_all > 0 ? magnitude(scale) / magnitude(of_all) : magnitude(1);
  rotary.attention_factor = rope.real("attention_factor", 0, kMostFactor, usual);
  const auto turns = [&](const char* key, double preset) {
    const double given = rope.real(key, 0, kMostFactor, preset);
    return given > 0 ? given : preset;
  };
  rotary.beta_fast = turns("beta_fast", 32);
  rotary.beta_slow = turns("beta_slow", 1);
  rotary.truncates = rope.values->boolean({"truncate"}, true);
}

double read_attention_factor(const RopeReader& rope, double usual) {
  const double factor = rope.real("attention_factor", 0, kMostFactor, usual);
  // sqrt and log of positions up to 1.
  if (!std::isfinite(factor)) rope.values->refuse("the attention factor that follows from it is not a finite number");
  return factor;
}

std::vector<double> read_factors(const RopeReader& rope, const char* key, std::int64_t num_rotated) {
  const JsonReader list = rope.values->at(key);
  if (static_cast<std::int64_t>(list.size()) != num_rotated / 2) {
    list.refuse(fmt::format("{} factors for {} rotated pairs", list.size(), num_rotated / 2));
  }
  std::vector<double> factors;
  for (const JsonReader& factor : list.items()) factors.push_back(factor.as_real(1e-6, kMostFactor));
  return factors;
}

void read_long_rope(const RopeReader& rope, Rotary& rotary) {
  rotary.original_positions = rope.original_positions();
  rotary.short_factors = read_factors(rope, "short_factor", rotary.num_rotated);
  rotary.long_factors = read_factors(rope, "long_factor", rotary.num_rotated);
  rotary.refills_cache = rope.defaults.may_be_partial;
  rotary.factor = rope.real("factor", 1e-6, kMostFactor, rope.max_positions() / rotary.original_positions);
  const double usual =
      rotary.factor <= 1 ? 1 : std::sqrt(1 + std::log(rotary.factor) / std::log(rotary.original_positions));
  rotary.attention_factor = read_attention_factor(rope, usual);
}

std::int64_t num_rotated_of(const RopeReader& rope) {
  const double whole = rope.config.real({"partial_rotary_factor"}, 1e-6, 1, 1.0);
  const double part = rope.real("partial_rotary_factor", 1e-6, 1, whole);
  const auto num_rotated = static_cast<std::int64_t>(static_cast<double>(rope.defaults.head_dim) * part);
  if ((part != 1 && !rope.defaults.may_be_partial) || num_rotated % 2 != 0 || num_rotated == 0) {
    rope.config.refuse_member("partial_rotary_factor",
                              fmt::format("{} of heads of {}: {}", part, rope.defaults.head_dim,
                                          rope.defaults.may_be_partial ? "expected an even number of rotated numbers"
                                                                       : "this family rotates whole heads"));
  }
  return num_rotated;
}

}  // namespace

double read_theta(const JsonReader& config, const char* key, double preset) {
  return config.real({key}, 1e-3, kMostTheta, preset);
}

Rotary read_rotary(const JsonReader& config, const RotaryDefaults& defaults) {
  auto values = config.find("rope_scaling");
  if (!values || (values->is_object() && values->json().empty())) values = config.find("rope_parameters");
  RotaryDefaults own = defaults;
  own.theta = read_theta(config, "rope_theta", defaults.theta);
  return read_rotary(config, values, own);
}

Rotary read_rotary(const JsonReader& config, const std::optional<JsonReader>& values, const RotaryDefaults& defaults) {
  if (values) check_is_flat(*values);
  const RopeReader rope{config, values, defaults};
  Rotary rotary;
  rotary.kind = kind_of(rope);
  rotary.theta = rope.real("rope_theta", 1e-3, kMostTheta, defaults.theta);
  rotary.num_rotated = num_rotated_of(rope);
  switch (rotary.kind) {
    case RotaryKind::kPlain:
      break;
    case RotaryKind::kLinear:
      rotary.factor = rope.required("factor");
      break;
    case RotaryKind::kDynamic:
      rotary.factor = rope.required("factor");
      rotary.original_positions = rope.max_positions();
      break;
    case RotaryKind::kLlama3:
      read_llama3(rope, rotary);
      break;
    case RotaryKind::kYarn:
      read_yarn(rope, rotary);
      break;
    case RotaryKind::kLongRope:
      read_long_rope(rope, rotary);
      break;
  }
  return rotary;
}

}  // namespace tessera
