// `tessera tokenize`: texts to token ids and back.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"
#include "core/output.h"
#include "data/tokenizer/tokenizer.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

struct TokenizeSettings {
  std::string tokenizer;
  bool decode = false, special_tokens = true;
};

std::string encode_line(const Tokenizer& tokenizer, const Json& line, bool special_tokens) {
  if (!line.is_string()) throw UsageError("expected one JSON string");
  return fmt::format("[{}]\n", fmt::join(tokenizer.encode(line.get_ref<const std::string&>(), special_tokens), ", "));
}

std::string decode_line(const Tokenizer& tokenizer, const Json& line, bool special_tokens) {
  if (!line.is_array()) throw UsageError("expected one JSON array of token ids");
  std::vector<std::int32_t> ids;
  for (const Json& id : line) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      throw UsageError(fmt::format("expected token ids, found {}", id.dump()));
    }
    if (id >= tokenizer.vocab_size()) {  // decode() leaves out unknown ids, as Hugging Face's does
      throw UsageError(fmt::format("token id {} is beyond the tokenizer's vocabulary of {}: it is another tokenizer's",
                                   id.dump(), tokenizer.vocab_size()));
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return Json(tokenizer.decode(ids, !special_tokens)).dump() + "\n";
}

void declare(Schema& schema, TokenizeSettings& settings) {
  schema.text(
      "tokenizer", &settings.tokenizer,
      "a tokenizer.json or tokenizer.model, a folder with one or with vocab.json and merges.txt, or a cached hub name",
      {.aliases = {"tokenizer_name"}});
  schema.boolean("decode", &settings.decode, "the reverse: arrays of ids to strings");
  schema.boolean("special_tokens", &settings.special_tokens,
                 "add the special tokens that the file asks for; with --decode, show them", {.preset = "true"});
}

int run_tokenize(Schema&, TokenizeSettings& settings) {
  if (settings.tokenizer.empty()) throw UsageError("--tokenizer is missing: name a tokenizer.json or its folder");
  const Tokenizer tokenizer = Tokenizer::load(find_model_folder(settings.tokenizer, Environment::of_process()));
  std::string text;
  for (std::int64_t number = 1; std::getline(std::cin, text); ++number) {
    try {
      const Json line = parse_json(text, "the line");
      print_out(settings.decode ? decode_line(tokenizer, line, settings.special_tokens)
                                : encode_line(tokenizer, line, settings.special_tokens));
    } catch (const OutputError&) {
      throw;
    } catch (const Error& error) {
      throw error.in_context(fmt::format("standard input, line {}", number));
    }
  }
  if (std::cin.bad()) throw Error("cannot read standard input");
  return 0;
}

}  // namespace

Command tokenize_command() {
  return with_settings<TokenizeSettings>(
      {.name = "tokenize",
       .summary = "texts to token ids and back, one per line",
       .about = "read one JSON string per line, print one JSON array of token ids per line"},
      declare, run_tokenize);
}

}  // namespace tessera
