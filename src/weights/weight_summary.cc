#include "weights/weight_summary.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/text.h"
#include "weights/model_folder.h"

namespace tessera {

namespace {

struct Place {
  std::string part;
  bool is_block;
};

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Place place_of(const std::string& tensor) {
  std::vector<std::string> words = split(tensor, '.');
  words.pop_back();  // "weight"
  const auto number = std::find_if(words.begin(), words.end(), is_number);
  const bool is_block = number != words.end() && number != words.begin();
  if (is_block) words.erase(number + 1, words.end());
  return {words.empty() ? tensor : join(words, "."), is_block};
}

bool is_buffer(const WeightEntry& entry) {
  // GPT-2's causal mask, and frequencies of rotary positions, which older versions of transformers saved.
  const bool is_mask = entry.name.ends_with("attn.bias") && entry.shape.size() == 4;
  return is_mask || entry.name.ends_with("rotary_emb.inv_freq") || entry.name.ends_with("attn.masked_bias") ||
         !is_floating(entry.type) || entry.name.ends_with("running_mean") || entry.name.ends_with("running_var") ||
         entry.name.ends_with("num_batches_tracked");
}

void add(WeightPart& part, const WeightEntry& entry) {
  part.num_tensors += 1;
  (is_buffer(entry) ? part.num_buffer_elements : part.num_parameters) += entry.numel;
  part.num_bytes += entry.num_bytes();
  part.types.emplace(torch_name(entry.type));
}

std::vector<WeightTie> ties_of(const Weights& weights, const Json& config) {
  std::vector<WeightTie> ties;
  for (auto& [name, held_by] : weights.ties()) ties.push_back({name, held_by, "the file"});
  constexpr const char* kHead = "lm_head.weight";
  const bool told = std::any_of(ties.begin(), ties.end(), [&](const WeightTie& tie) { return tie.name == kHead; });
  if (told || weights.find(kHead) != nullptr || !ties_word_embeddings(config)) return ties;
  for (const WeightEntry& entry : weights.entries()) {
    for (const char* embedding : {"word_embeddings.weight", "wte.weight", "embed_tokens.weight"}) {
      const bool whole_words = entry.name == embedding || entry.name.ends_with(std::string(".") + embedding);
      if (whole_words) return ties.push_back({kHead, entry.name, "config.json"}), ties;
    }
  }
  return ties;
}

}  // namespace

WeightSummary summarise(const Weights& weights, const Json& config) {
  WeightSummary summary;
  summary.ties = ties_of(weights, config);
  std::unordered_set<std::string> tied;
  for (const WeightTie& tie : summary.ties) tied.insert(tie.name);
  std::unordered_map<std::string, std::size_t> known;
  for (const WeightEntry& entry : weights.entries()) {
    if (tied.contains(entry.name)) continue;
    const Place place = place_of(entry.name);
    const auto [at, is_new] = known.try_emplace(place.part, summary.parts.size());
    if (is_new) {
      summary.parts.emplace_back();
      summary.parts.back().name = place.part;
      summary.parts.back().is_block = place.is_block;
    }
    add(summary.parts[at->second], entry);
    add(summary.all, entry);
    if (place.is_block && !is_buffer(entry)) summary.num_parameters_in_blocks += entry.numel;
  }
  return summary;
}

}  // namespace tessera
