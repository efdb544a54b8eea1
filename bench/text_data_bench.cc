// The data part of starting a run that trains on a SQuAD file: text_data_bench FILE TOKENIZER CACHE_FOLDER
// Prints the milliseconds until the tokens are ready, whether the cache had them, and their number and hash.
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "data/text/content_hash.h"
#include "data/text/token_cache.h"
#include "data/text/token_store.h"

namespace {

int run(const std::string& file, const std::string& tokenizer_path, const std::string& cache_folder) {
  using namespace tessera;
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  TextDataSettings settings;
  settings.file = file;
  settings.label_mode = LabelMode::kFull;
  settings.cache_folder = cache_folder;
  settings.num_threads = 1;
  const auto start = std::chrono::steady_clock::now();
  const TextData data = load_text_data(settings, tokenizer);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::string ids;
  for (std::int64_t row = 0; row < data.tokens.size(); ++row) {
    const auto of_row = std::as_bytes(data.tokens.ids(row));
    ids.append(reinterpret_cast<const char*>(of_row.data()), of_row.size());
  }
  fmt::print("{:.2f} {} {} {:016x}\n", ms, data.cache_use == CacheUse::kFound ? "found" : "made",
             data.tokens.counts().num_tokens, xxh64(ids));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: text_data_bench FILE TOKENIZER CACHE_FOLDER\n");
    return 2;
  }
  try {
    tessera::configure_log("warn", -1);
    return run(argv[1], argv[2], argv[3]);
  } catch (const tessera::Error& error) {
    fmt::print(stderr, "text_data_bench: {}\n", error.what());
    return 1;
  }
}
