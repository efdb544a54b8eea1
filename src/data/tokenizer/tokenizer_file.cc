#include "data/tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <initializer_list>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/sentencepiece.h"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

// Raised when the same files would give other tokens than before, so that no stale cache is used.
constexpr std::string_view kEncodingVersion = "tessera-tokenizer-2";
constexpr const char* kEndOfText = "<|endoftext|>";  // GPT-2's only special token

// SHA-256 of the parts, one after another, in hexadecimal digits.
std::string hash_of(std::initializer_list<std::string_view> parts) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (const std::string_view part : parts) {
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256_final(&state, digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

// Pieces stay bytes if the model can read bytes; otherwise the last step turns them into characters.
void agree_on_bytes(PreTokenizers& pre_tokenizers, Bpe& model) {
  if (pre_tokenizers.ends_in_bytes && !model.read_bytes()) pre_tokenizers.add_byte_mapper();
}

// Whether the first character of a text stays where it is, and no other one appears there. Metaspace's scheme "first"
// asks where a piece began in the text before the normalizer.
bool keeps_beginnings(const JsonReader& normalizer) {
  if (normalizer.is_null()) return true;
  const std::string type = normalizer.text("type");
  if (type == "Replace") {
    const auto what = normalizer.at("pattern").find("String");
    return what && to_utf32(what->as_text()).size() == 1 && to_utf32(normalizer.text("content")).size() == 1;
  }
  if (type != "Sequence") return type == "NFC";
  for (const JsonReader& step : normalizer.at("normalizers").items()) {
    if (!keeps_beginnings(step)) return false;
  }
  return true;
}

// The name of a special token: a string, or an object that describes one.
std::optional<std::string> special_name(const JsonReader& component, const char* key) {
  const auto value = component.find(key);
  if (!value) return std::nullopt;
  return value->is_object() ? value->text("content") : value->as_text();
}

// transformers' classes that pad on the left unless tokenizer_config.json says otherwise.
bool pads_left(std::string_view tokenizer_class) {
  if (tokenizer_class.ends_with("Fast")) tokenizer_class.remove_suffix(4);
  return tokenizer_class == "LlamaTokenizer" || tokenizer_class == "CodeLlamaTokenizer" ||
         tokenizer_class == "GemmaTokenizer" || tokenizer_class == "CohereTokenizer";
}

// tokenizer_config.json, then special_tokens_map.json, which wins where they differ (as in transformers 4).
void read_names(const fs::path& folder, TokenizerParts& parts) {
  std::optional<std::string> names[3];
  static constexpr const char* kKeys[3] = {"eos_token", "bos_token", "pad_token"};
  for (const char* file_name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const fs::path path = folder / file_name;
    if (!fs::exists(path)) continue;
    const JsonText json(read_file(path), path.string());
    const JsonReader component = json.root();
    for (std::size_t i = 0; i < 3; ++i) {
      if (auto name = special_name(component, kKeys[i])) names[i] = std::move(name);
    }
    if (pads_left(component.text("tokenizer_class", ""))) parts.padding_side = PaddingSide::kLeft;
    if (!component.has("padding_side")) continue;
    const std::string side = component.text("padding_side");
    if (side != "left" && side != "right") component.at("padding_side").refuse_value("left or right");
    parts.padding_side = side == "left" ? PaddingSide::kLeft : PaddingSide::kRight;
  }
  // GPT-2's folders do not name it; its class in transformers does.
  if (!names[0] && !names[1] && parts.added_tokens.is_special(kEndOfText)) names[0] = names[1] = kEndOfText;
  std::optional<std::int32_t>* const ids[3] = {&parts.eos_id, &parts.bos_id, &parts.pad_id};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!names[i]) continue;
    *ids[i] = parts.id_of(*names[i]);
    if (!*ids[i]) {
      throw UsageError(fmt::format("{}: {} is \"{}\", which the vocabulary does not have", folder.string(), kKeys[i],
                                   printable(*names[i], 60)));
    }
  }
}

// Other classes split texts in other ways, which only a tokenizer.json says.
void check_class(const JsonReader& config) {
  const std::string type = config.text("tokenizer_class", "GPT2Tokenizer");
  for (const char* known : {"GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"}) {
    if (type == known) return;
  }
  config.at("tokenizer_class")
      .refuse("vocab.json and merges.txt can only be read as GPT-2's; save the tokenizer as a tokenizer.json");
}

// Of tokenizer_config.json.
struct AddsTokens {
  std::optional<bool> bos, eos;
};

AddsTokens read_adds_tokens(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) return {};
  const JsonText json(read_file(path), path.string());
  AddsTokens adds;
  if (const auto value = json.root().find("add_bos_token")) adds.bos = value->as_bool();
  if (const auto value = json.root().find("add_eos_token")) adds.eos = value->as_bool();
  return adds;
}

// As in transformers 5, a tokenizer.json decides itself what is added; transformers 4 let the config decide for some
// classes. Where they differ, users should know.
void warn_of_ignored_settings(const fs::path& file, const TokenizerParts& parts) {
  const AddsTokens adds = read_adds_tokens(file.parent_path());
  const std::vector<std::int32_t>& single = parts.post_processor.single;
  const auto warn = [&](const char* key, bool wanted, bool is_added) {
    if (wanted == is_added) return;
    log_warn(
        "{}: {} of tokenizer_config.json is {}, but the post_processor {} the token, which counts (as in "
        "transformers 5)",
        file.string(), key, wanted, is_added ? "adds" : "does not add");
  };
  if (adds.bos && parts.bos_id) warn("add_bos_token", *adds.bos, !single.empty() && single.front() == *parts.bos_id);
  if (adds.eos && parts.eos_id) warn("add_eos_token", *adds.eos, !single.empty() && single.back() == *parts.eos_id);
}

TokenizerParts read_vocab_and_merges(const fs::path& vocab, const fs::path& merges) {
  const std::string vocab_text = read_file(vocab), merges_text = read_file(merges);
  Bpe model(read_vocabulary(JsonText(vocab_text, vocab.string()).root()), parse_merges(merges_text, merges.string()),
            {}, merges.string());
  if (const fs::path extra = vocab.parent_path() / "added_tokens.json"; fs::exists(extra)) {
    throw UsageError(extra.string() + ": not supported without a tokenizer.json; save the tokenizer as one");
  }
  bool add_prefix_space = false;
  std::vector<AddedToken> added;
  std::string config_text;
  if (const fs::path config = vocab.parent_path() / "tokenizer_config.json"; fs::exists(config)) {
    config_text = read_file(config);
    const JsonText settings(config_text, config.string());
    check_class(settings.root());
    add_prefix_space = settings.root().boolean("add_prefix_space", false);
    added = read_added_tokens_decoder(settings.root(), model.vocabulary());
  }
  PreTokenizers pre_tokenizers;
  pre_tokenizers.add_byte_level(add_prefix_space, /*use_regex=*/true);
  agree_on_bytes(pre_tokenizers, model);
  if (model.vocabulary().id_of(kEndOfText)) added.push_back({kEndOfText, false, false, false, false, true});
  AddedTokens added_tokens(added, model.vocabulary(), nullptr);
  return {.model = std::move(model),
          .normalizer = nullptr,
          .pre_tokenizers = std::move(pre_tokenizers),
          .added_tokens = std::move(added_tokens),
          .post_processor = {},
          .decoder = decode_byte_level,
          .content_hash = hash_of({kEncodingVersion, hash_of({config_text}), hash_of({vocab_text}), merges_text})};
}

TokenizerParts read_sentencepiece_folder(const fs::path& model) {
  TokenizerParts parts = read_sentencepiece(model);
  const fs::path folder = model.parent_path(), config = folder / "tokenizer_config.json";
  if (fs::exists(folder / "added_tokens.json")) {
    throw UsageError(fmt::format("{}: not supported beside a tokenizer.model; {}",
                                 (folder / "added_tokens.json").string(), how_to_convert(folder)));
  }
  read_names(folder, parts);
  parts.content_hash =
      hash_of({kEncodingVersion, hash_of({fs::exists(config) ? read_file(config) : ""}), hash_of({read_file(model)})});
  return parts;
}

}  // namespace

std::optional<std::int32_t> TokenizerParts::id_of(std::string_view token) const {
  const auto id = added_tokens.id_of(token);
  return id ? id : model.vocabulary().id_of(token);
}

TokenizerParts read_tokenizer_json(std::string text, const std::string& origin) {
  std::string content_hash = hash_of({kEncodingVersion, text});
  const JsonText json(std::move(text), origin);
  const JsonReader file = json.root();
  file.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                   "decoder", "model"});
  if (file.text("version", "1.0") != "1.0") file.at("version").refuse_value("\"1.0\"");
  const Json null;
  const JsonSource nothing{&null, origin};
  const auto part = [&](const char* key) { return file.find(key).value_or(JsonReader(nothing)); };
  Bpe model = read_bpe(file.at("model"));
  Normalizer normalizer = read_normalizer(part("normalizer"));
  PreTokenizers pre_tokenizers = read_pre_tokenizers(part("pre_tokenizer"));
  if (pre_tokenizers.asks_for_beginning && !keeps_beginnings(part("normalizer"))) {
    file.at("normalizer")
        .refuse(
            "before the pre-tokenizer Metaspace with prepend_scheme \"first\", only NFC and Replace of one character "
            "by "
            "another are supported");
  }
  agree_on_bytes(pre_tokenizers, model);
  AddedTokens added_tokens = read_added_tokens(file, model.vocabulary(), normalizer);
  return {.model = std::move(model),
          .normalizer = std::move(normalizer),
          .pre_tokenizers = std::move(pre_tokenizers),
          .added_tokens = std::move(added_tokens),
          .post_processor = read_post_processor(part("post_processor")),
          .decoder = read_decoder(part("decoder")),
          .content_hash = std::move(content_hash)};
}

TokenizerParts read_tokenizer(const fs::path& path) {
  if (!fs::is_directory(path)) {
    if (path.filename() == "tokenizer.model") return read_sentencepiece_folder(path);
    TokenizerParts parts = read_tokenizer_json(read_file(path), path.string());
    read_names(path.parent_path(), parts);
    warn_of_ignored_settings(path, parts);
    return parts;
  }
  const fs::path whole = path / "tokenizer.json", vocab = path / "vocab.json", merges = path / "merges.txt";
  if (fs::exists(whole)) return read_tokenizer(whole);
  if (const fs::path model = path / "tokenizer.model"; fs::exists(model)) return read_sentencepiece_folder(model);
  for (const char* other : {"tekken.json", "tiktoken.model", "qwen.tiktoken"}) {
    if (fs::exists(path / other)) {
      // With mistral-common installed, transformers would keep tekken.json as it is.
      const char* const extra = std::string_view(other) == "tekken.json" ? ", mistral_format=False" : "";
      throw UsageError(fmt::format("{}: cannot be read; {}", (path / other).string(), how_to_convert(path, extra)));
    }
  }
  if (!fs::exists(vocab) || !fs::exists(merges)) {
    throw UsageError(
        fmt::format("{}: this folder has neither tokenizer.json nor vocab.json with merges.txt nor tokenizer.model",
                    path.string()));
  }
  TokenizerParts parts = read_vocab_and_merges(vocab, merges);
  read_names(path, parts);
  // Here transformers lets the config decide.
  const AddsTokens adds = read_adds_tokens(path);
  if (adds.bos.value_or(false) && parts.bos_id) {
    parts.post_processor.single.insert(parts.post_processor.single.begin(), *parts.bos_id);
  }
  if (adds.eos.value_or(false) && parts.eos_id) parts.post_processor.single.push_back(*parts.eos_id);
  return parts;
}

}  // namespace tessera::internal
