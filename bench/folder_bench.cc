// Loads a model folder of BLOOM-560M's size into a model: time against plainly reading the file, and peak memory.
//
//   folder_bench write FOLDER   makes the folder (1.1 GB of bf16, BLOOM-560M's names and shapes, random values)
//   folder_bench FOLDER         alternates reading and loading it, prints the marks; exit status 3: a mark was missed
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "core/error.h"
#include "support/shell_module.h"
#include "weights/load_weights.h"
#include "weights/weights.h"
#include "weights/write_model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHidden = 1024, kVocabulary = 250880, kLayers = 24;
constexpr int kRounds = 7;

using Maker = std::function<at::Tensor(at::IntArrayRef)>;

std::shared_ptr<ShellModule> bloom_560m(const Maker& make) {
  auto shell = std::make_shared<ShellModule>();
  const auto norm = [&](const std::string& name) {
    shell->add(name + ".weight", make({kHidden}));
    shell->add(name + ".bias", make({kHidden}));
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    shell->add(name + ".weight", make({out, in}));
    shell->add(name + ".bias", make({out}));
  };
  shell->add("word_embeddings.weight", make({kVocabulary, kHidden}));
  norm("word_embeddings_layernorm");
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string block = fmt::format("h.{}.", i);
    norm(block + "input_layernorm");
    linear(block + "self_attention.query_key_value", 3 * kHidden, kHidden);
    linear(block + "self_attention.dense", kHidden, kHidden);
    norm(block + "post_attention_layernorm");
    linear(block + "mlp.dense_h_to_4h", 4 * kHidden, kHidden);
    linear(block + "mlp.dense_4h_to_h", kHidden, 4 * kHidden);
  }
  norm("ln_f");
  return shell;
}

void write(const fs::path& folder) {
  const auto model = bloom_560m([](at::IntArrayRef shape) { return at::empty(shape, at::kBFloat16).normal_(0, 0.02); });
  const Json config = {{"architectures", {"BloomModel"}},
                       {"model_type", "bloom"},
                       {"hidden_size", kHidden},
                       {"n_layer", kLayers},
                       {"n_head", 16},
                       {"vocab_size", kVocabulary}};
  std::vector<NamedTensor> tensors;
  for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value()});
  write_model_folder(folder, config, tensors);
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void read_plainly(const fs::path& path, char* buffer) {
  const auto size = static_cast<std::size_t>(fs::file_size(path));
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error("cannot open " + path.string());
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, buffer + done, size - done);
    if (got <= 0) throw Error("cannot read " + path.string());
    done += static_cast<std::size_t>(got);
  }
  ::close(file);
}

// A field of /proc/self/status, in bytes.
std::int64_t memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != field + ":") continue;
    std::int64_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  throw Error("no " + field + " in /proc/self/status");
}

// Peak memory of the process while it loads into a model that is already in memory, beyond what it used before.
std::int64_t extra_memory(const fs::path& folder, at::ScalarType type) {
  const auto model = bloom_560m([&](at::IntArrayRef shape) { return at::zeros(shape, type).fill_(1); });
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak to the current use
  const std::int64_t before = memory("VmRSS");
  load_weights(*model, Weights::open(folder));
  return memory("VmHWM") - before;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(const fs::path& folder) {
  const fs::path file = folder / "model.safetensors";
  const double gigabytes = static_cast<double>(fs::file_size(file)) / 1e9;
  fmt::print("{:.3f} GB in one file, page cache warm, {} threads, {} rounds in turns, medians\n", gigabytes,
             at::get_num_threads(), kRounds);
  // Reads into memory that the process has already touched, so that only reading is timed, not page allocation.
  const auto size = static_cast<std::int64_t>(fs::file_size(file));
  const at::Tensor buffer = at::zeros({size}, at::kByte).fill_(1);
  const auto touched = [](at::ScalarType type) {
    return bloom_560m([type](at::IntArrayRef shape) { return at::zeros(shape, type).fill_(1); });
  };
  const auto bf16 = touched(at::kBFloat16), fp32 = touched(at::kFloat);
  const auto load = [&](ShellModule& model) { return seconds_of([&] { load_weights(model, Weights::open(folder)); }); };
  const auto read = [&] {
    return seconds_of([&] { read_plainly(file, static_cast<char*>(buffer.mutable_data_ptr())); });
  };
  read();
  std::vector<double> reads, loads, conversions;
  for (int round = 0; round < kRounds; ++round) {
    reads.push_back(read());
    loads.push_back(load(*bf16));
    conversions.push_back(load(*fp32));
  }
  const auto show = [&](const char* what, const std::vector<double>& seconds) {
    fmt::print("{:<39} {:.2f} GB/s of the file\n", what, gigabytes / median(seconds));
  };
  show("read() of the file into memory", reads);
  show("into a bf16 model", loads);
  show("into an fp32 model, converted", conversions);
  const double opening = seconds_of([&] { Weights::open(folder); });
  fmt::print("{:<39} {:.2f} ms\n", "opening alone (what inspect reads)", opening * 1e3);

  const double speed = median(reads) / median(loads);
  const double largest = static_cast<double>(kVocabulary * kHidden * 2);
  const double extra = static_cast<double>(extra_memory(folder, at::kBFloat16)) / largest;
  const double extra_converted = static_cast<double>(extra_memory(folder, at::kFloat)) / largest;
  const auto mark = [](const char* what, double value, const char* relation, double limit, bool met) {
    fmt::print("mark: {}: {:.3f} ({} {}): {}\n", what, value, relation, limit, met ? "met" : "missed");
    return met;
  };
  bool met = mark("loading speed over that of read()", speed, "at least", 0.8, speed >= 0.8);
  met &= mark("peak extra memory over the largest tensor", extra, "at most", 1, extra <= 1);
  met &= mark("the same, converted to fp32", extra_converted, "at most", 1, extra_converted <= 1);
  return met ? 0 : 3;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "write") {
      tessera::write(argv[2]);
      return 0;
    }
    if (argc == 2) return tessera::measure(argv[1]);
    fmt::print(stderr, "usage: {} [write] FOLDER\n", argv[0]);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
