// Trains BLOOM on sequences of token ids, with any strategy and any number of ranks.
//
//   bloom [STRATEGY [MODEL [IDS [OUTPUT]]]]                     one process
//   tessera launch --nproc_per_node 2 bloom zero3 bloom-560m ids.jsonl out
//
// MODEL: a Hugging Face model folder, or - for a small model from scratch. IDS: a file with one JSON array of token ids
// per line, as `tessera tokenize --tokenizer bloom-560m < texts.jsonl` writes it, or - for a few built-in sequences of
// consecutive ids. OUTPUT: a folder for the trained model, which transformers loads.
#include <tessera/optimizer.h>
#include <tessera/shard.h>
#include <tessera/text_model.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {

using Sequences = std::vector<std::vector<std::int64_t>>;

constexpr int kNumSteps = 10;
constexpr std::size_t kSequencesAStep = 4;  // per rank

const char* const kSmallConfig = R"({"model_type": "bloom", "vocab_size": 100, "hidden_size": 64, "n_layer": 4,
                                     "n_head": 4, "hidden_dropout": 0.0, "attention_dropout": 0.0})";

// "[1, 2, 3]"
std::vector<std::int64_t> parse_ids(std::string line) {
  for (char& c : line) {
    if (c == '[' || c == ']' || c == ',') c = ' ';
  }
  std::istringstream text(line);
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; text >> id;) ids.push_back(id);
  if (!text.eof()) throw std::runtime_error("a line of the ids is not a JSON array of numbers");
  return ids;
}

Sequences read_sequences(const std::string& file) {
  Sequences sequences;
  if (file == "-") {
    for (std::int64_t start = 0; start < 40; ++start) {
      for (std::int64_t i = 0; i < 8 + start % 5; ++i) {
        if (i == 0) sequences.emplace_back();
        sequences.back().push_back((start * 7 + i) % 100);
      }
    }
    return sequences;
  }
  std::ifstream lines(file);
  if (!lines) throw std::runtime_error("cannot read " + file);
  for (std::string line; std::getline(lines, line);) {
    if (std::vector<std::int64_t> ids = parse_ids(line); ids.size() > 1) sequences.push_back(std::move(ids));
  }
  if (sequences.empty()) throw std::runtime_error(file + " has no sequence of two or more tokens");
  return sequences;
}

// Rows are dealt to the ranks in turn.
tessera::PackedBatch batch_of(const Sequences& all, int step, const tessera::World& world) {
  Sequences own;
  for (std::size_t i = 0; i < kSequencesAStep; ++i) {
    const std::size_t row =
        (static_cast<std::size_t>(step) * kSequencesAStep + i) * static_cast<std::size_t>(world.size());
    own.push_back(all[(row + static_cast<std::size_t>(world.rank())) % all.size()]);
  }
  return tessera::next_token_batch(own, world.device());
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, const char* preset) { return std::string(argc > i ? argv[i] : preset); };
  const std::string strategy = argument(1, "ddp"), folder = argument(2, "-"), output = argument(4, "");
  return tessera::run_rank({}, [&](tessera::World& world) {
    const Sequences sequences = read_sequences(argument(3, "-"));
    const auto model =
        folder == "-" ? tessera::make_text_model(kSmallConfig, /*seed=*/1) : tessera::load_text_model(folder);
    tessera::Sharded sharded(world, *model, {.spread = {.strategy = strategy}});
    tessera::Optimizer optimizer(sharded, tessera::AdamW{.learning_rate = folder == "-" ? 1e-2 : 5e-5});
    for (int step = 0; step < kNumSteps; ++step) {
      model->set_dropout_seed(static_cast<std::uint64_t>(step * world.size() + world.rank()));
      const tessera::PackedBatch batch = batch_of(sequences, step, world);
      const at::Tensor sum = sharded.forward([&] { return model->loss_sum(batch, sharded); });
      sharded.backward(sum);
      // Ranks have different numbers of tokens: the mean is over the tokens of all ranks.
      const double num_tokens = tessera::mean_over_ranks(world, at::scalar_tensor(batch.num_counted)) * world.size();
      const double loss = tessera::mean_over_ranks(world, sum) * world.size() / num_tokens;
      optimizer.step({.max_norm = 1, .divisor = num_tokens});
      if (world.rank() == 0) std::printf("step %d loss %.9g\n", step, loss);
    }
    if (!output.empty()) tessera::save_text_model(sharded, *model, output);
    return 0;
  });
}
