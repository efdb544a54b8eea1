// The data part of starting `tessera train lm` on files of rows: row_data_bench FILE TOKENIZER CACHE_FOLDER
// Prints the milliseconds until packed rows are ready, whether the cache had their tokens, the number and the hash of
// the tokens, and the most memory the process held until then, in MiB.
#define XXH_INLINE_ALL  // it stands alone
#include <fmt/format.h>
#include <sys/resource.h>
#include <xxhash.h>

#include <chrono>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "data/loading/packing.h"
#include "data/rows/row_stream.h"
#include "data/text/corpus.h"
#include "data/text/document_encoder.h"
#include "data/tokenizer/tokenizer.h"

namespace {

constexpr std::int64_t kMaxLength = 1024;

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::uint64_t hash_of(const tessera::TokenRows& rows) {
  XXH64_state_t* const state = XXH64_createState();
  XXH64_reset(state, 0);
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    const auto bytes = std::as_bytes(rows.ids(row));
    XXH64_update(state, bytes.data(), bytes.size());
  }
  const std::uint64_t hash = XXH64_digest(state);
  XXH64_freeState(state);
  return hash;
}

int run(const std::string& file, const std::string& tokenizer_path, const std::string& cache_folder) {
  using namespace tessera;
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  const auto start = std::chrono::steady_clock::now();
  const DocumentEncoder encoder(tokenizer, {.max_length = kMaxLength, .ends_documents = false});
  const Corpus corpus = load_corpus(
      [&] { return open_rows({file}); }, [&](const PlacedRow& row) { return encoder.encode(row.values); },
      {.tokenizer_hash = tokenizer.content_hash(), .encoder = encoder.description(), .cache_folder = cache_folder});
  const PackedRows packed = pack_best_fit(corpus.rows.lengths(), kMaxLength, 0);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const double peak = peak_mebibytes();
  fmt::print("{:.2f} {} {} {:016x} {:.0f} {:.4f}\n", ms, corpus.num_parts_made == 0 ? "found" : "made",
             corpus.rows.counts().num_tokens, hash_of(corpus.rows), peak, 100 * share_unfilled(packed, kMaxLength));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: row_data_bench FILE TOKENIZER CACHE_FOLDER\n");
    return 2;
  }
  try {
    tessera::configure_log("warn", -1);
    return run(argv[1], argv[2], argv[3]);
  } catch (const tessera::Error& error) {
    fmt::print(stderr, "row_data_bench: {}\n", error.what());
    return 1;
  }
}
