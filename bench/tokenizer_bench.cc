// Tokenizes texts on one thread: reads one JSON string per line and measures on request, so that the Python side can
// alternate with it. Each line on standard input is a command: "encode" encodes all texts once and prints seconds and
// tokens, "long KIND SIZE" encodes one generated text.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "core/json.h"
#include "data/tokenizer/tokenizer.h"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<std::string> read_texts(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) texts.push_back(parse_json(line, path).get<std::string>());
  if (texts.empty()) throw UsageError(fmt::format("{}: no texts", path));
  return texts;
}

// The same texts as on the Python side.
std::string long_text(const std::string& kind, std::size_t size) {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < size) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    if (kind == "one_letter") text += 'a';
    if (kind == "no_spaces") text += static_cast<char>('a' + (state >> 33) % 26);
    if (kind == "only_spaces") text += ' ';
  }
  return text;
}

void answer(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const std::string& command) {
  std::istringstream words(command);
  std::string what, kind;
  std::size_t size = 0;
  words >> what >> kind >> size;
  std::size_t num_tokens = 0;
  double seconds = 0;
  if (what == "encode") {
    const auto begin = Clock::now();
    for (const std::string& text : texts) num_tokens += tokenizer.encode(text).size();
    seconds = since(begin);
  } else {
    const std::string text = long_text(kind, size);
    const auto begin = Clock::now();
    num_tokens = tokenizer.encode(text).size();
    seconds = since(begin);
  }
  fmt::print("{:.6f} {}\n", seconds, num_tokens);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenizer_bench TOKENIZER TEXTS.jsonl <COMMANDS\n");
    return 2;
  }
  try {
    const auto begin = Clock::now();
    const Tokenizer tokenizer = Tokenizer::load(argv[1]);
    const double seconds = since(begin);
    const std::vector<std::string> texts = read_texts(argv[2]);
    fmt::print("{:.6f} {}\n", seconds, tokenizer.vocab_size());
    std::fflush(stdout);
    for (std::string command; std::getline(std::cin, command);) answer(tokenizer, texts, command);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
