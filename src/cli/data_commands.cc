// Data: `tessera data inspect` shows what a file or folder holds, `tessera tokenize` turns texts into token ids and
// back.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <limits>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/output.h"
#include "data/images/image_folder.h"
#include "data/text/qa_sequence.h"
#include "data/text/squad.h"
#include "data/text/text_report.h"
#include "data/text/token_cache.h"
#include "data/tokenizer/tokenizer.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct DataCommandSettings {
  std::vector<std::string> words;
  std::string tokenizer, label_mode, cache_folder;
  std::int64_t max_length = 0, max_samples = 0, subset_seed = 0, batch_size = 0, batch_tokens = 0;
  bool as_json = false, uses_cache = true;
};

void declare(Schema& schema, DataCommandSettings& s) {
  schema.positionals("inspect PATH: a SQuAD file (JSON or JSON lines), or a folder of images", &s.words);
  schema.group("Text");
  schema.text(
      "tokenizer", &s.tokenizer,
      "a tokenizer.json, a folder that holds one or a fetched model's hub name; without it no tokens are counted",
      {.aliases = {"tokenizer_name"}});
  schema.integer("max_length", &s.max_length, "maximum tokens per row", {.preset = "512", .at_least = 1});
  schema.text("label_mode", &s.label_mode, "which tokens count for the loss",
              {.preset = "answer", .choices = label_mode_names()});
  schema.integer("max_samples", &s.max_samples, "use only this many rows; -1: all", {.preset = "-1", .at_least = -1});
  schema.integer("subset_seed", &s.subset_seed,
                 "choose them as datasets' shuffle(seed).select(range(n)) does; not given: the first ones",
                 {.at_least = 0});
  schema.integer("batch_size", &s.batch_size, "rows per batch, to compute the share of padding avoided",
                 {.preset = "4", .at_least = 1});
  schema.integer("batch_tokens", &s.batch_tokens,
                 "tokens per batch, to show how rows pack into such batches; 0: do not show",
                 {.preset = "0", .at_least = 0});
  schema.text("cache_folder", &s.cache_folder,
              "folder of the token cache; not given: $TESSERA_CACHE, $XDG_CACHE_HOME/tessera or ~/.cache/tessera");
  schema.boolean("cache", &s.uses_cache, "keep the tokens for the next run", {.preset = "true"});
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print one JSON object (text only)");
}

// What happened with the cache, for the report.
std::string cache_text(const TextData& data) {
  if (data.cache_use == CacheUse::kFound) return "found in " + data.cache_file.string();
  return data.cache_use == CacheUse::kMade ? "kept in " + data.cache_file.string() : "not kept";
}

TextDataSettings text_settings(const Schema& schema, const DataCommandSettings& s, const fs::path& path) {
  TextDataSettings text;
  text.file = path;
  text.subset = {s.max_samples, schema.at("subset_seed").is_set(), static_cast<std::uint64_t>(s.subset_seed)};
  text.label_mode = label_mode_of(s.label_mode);
  text.max_length = s.max_length;
  if (s.uses_cache) {
    text.cache_folder =
        s.cache_folder.empty() ? default_cache_folder(Environment::of_process()) : fs::path(s.cache_folder);
  }
  return text;
}

// A setting that is given where it has no effect is a user's mistake.
void refuse_given(const Schema& schema, std::initializer_list<const char*> names, const std::string& reason) {
  for (const char* name : names) {
    if (schema.at(name).source() == Source::kCommandLine) throw UsageError(fmt::format("--{} {}", name, reason));
  }
}

void inspect_text(const Schema& schema, const DataCommandSettings& s, const fs::path& path) {
  if (s.tokenizer.empty()) {
    refuse_given(schema,
                 {"label_mode", "max_length", "max_samples", "subset_seed", "batch_size", "batch_tokens",
                  "cache_folder", "cache"},
                 "is about tokens: give --tokenizer too");
  }
  const std::string bytes = read_squad_bytes(path);  // once, so that it may be a pipe
  const SquadSummary file = summarise(parse_squad(bytes, path.string()));
  std::string text = fmt::format("{}\n{}", path.string(), summary_text(file));
  Json json = {{"path", path.string()}, {"file", summary_json(file)}};
  if (!s.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(find_model_folder(s.tokenizer, Environment::of_process()));
    const std::string warning = warning_of(label_mode_of(s.label_mode));
    if (!warning.empty()) log_warn("{}", warning);
    const auto start = std::chrono::steady_clock::now();
    const TextData data = load_text_data(text_settings(schema, s, path), tokenizer, bytes);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const TokenSummary tokens = summarise(data.tokens, s.max_length, s.batch_size, s.batch_tokens);
    text += fmt::format("tokens, by {} in label mode {}\n{}  {:<22} {}, ready in {:.1f} ms\n", s.tokenizer,
                        s.label_mode, summary_text(tokens), "cache", cache_text(data), ms);
    json["tokens"] = summary_json(tokens);
    json["tokens"]["label_mode"] = s.label_mode;
    json["tokens"]["cache"] = {{"file", data.cache_file.string()}, {"found", data.cache_use == CacheUse::kFound}};
  }
  print_out(s.as_json ? json_text(json, 2) + "\n" : text);
}

// The first file of text in a folder, by name; empty: none.
std::string text_file_in(const fs::path& folder) {
  std::string first;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string(), ending = entry->path().extension().string();
    if ((ending == ".json" || ending == ".jsonl") && (first.empty() || name < first)) first = name;
  }
  return first;
}

void inspect_pictures(const Schema& schema, const fs::path& folder) {
  refuse_given(schema,
               {"tokenizer", "label_mode", "max_length", "max_samples", "subset_seed", "batch_size", "batch_tokens",
                "cache_folder", "cache", "json"},
               fmt::format("is for text; {} is a folder, which is read as images", folder.string()));
  try {
    print_out(describe_image_folder(folder));
  } catch (const UsageError& error) {
    const std::string file = text_file_in(folder);
    if (file.empty()) throw;
    throw UsageError(fmt::format("{}. For text name the file: {}", error.what(), (folder / file).string()));
  }
}

int run_data(Schema& schema, DataCommandSettings& settings) {
  if (settings.words.size() != 2 || settings.words.front() != "inspect") {
    throw UsageError("expected: tessera data inspect PATH [options]; `tessera data --help` shows them");
  }
  const fs::path path = settings.words.back();
  // A folder that `datasets` saved is a folder too, but of text: the reader of text refuses it with advice.
  if (is_folder(path) && !is_arrow_folder(path)) {
    inspect_pictures(schema, path);
  } else {
    inspect_text(schema, settings, path);
  }
  return 0;
}

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

Command data_command() {
  return with_settings<DataCommandSettings>({.name = "data",
                                             .summary = "inspect a data file or folder: what is in it, how it packs",
                                             .about = "inspect PATH: show what a data file or folder holds"},
                                            declare, run_data);
}

Command tokenize_command() {
  return with_settings<TokenizeSettings>(
      {.name = "tokenize",
       .summary = "texts to token ids and back, one per line",
       .about = "read one JSON string per line, print one JSON array of token ids per line"},
      declare, run_tokenize);
}

}  // namespace tessera
