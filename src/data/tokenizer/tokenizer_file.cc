#include "data/tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <initializer_list>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

// Raised when the same files would give other tokens than before, so that no stale cache is used.
constexpr std::string_view kEncodingVersion = "tessera-tokenizer-1";
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

PaddingSide read_direction(const Component& component) {
  const std::string side = component.as_text();
  if (side != "Left" && side != "Right") component.refuse_value("Left or Right");
  return side == "Left" ? PaddingSide::kLeft : PaddingSide::kRight;
}

std::optional<StoredTruncation> read_truncation(const Component& file) {
  if (!file.has("truncation")) return std::nullopt;
  const Component component = file.child("truncation");
  component.allow_only({"direction", "max_length", "strategy", "stride"});
  StoredTruncation stored;
  component.child("max_length");
  stored.max_length = component.count("max_length", 0);
  stored.stride = component.count("stride", 0);
  if (component.has("direction")) stored.direction = read_direction(component.child("direction"));
  stored.strategy = component.has("strategy") ? component.text("strategy") : "LongestFirst";
  if (stored.strategy != "LongestFirst" && stored.strategy != "OnlyFirst" && stored.strategy != "OnlySecond") {
    component.child("strategy").refuse_value("LongestFirst, OnlyFirst or OnlySecond");
  }
  return stored;
}

std::optional<StoredPadding> read_padding(const Component& file) {
  if (!file.has("padding")) return std::nullopt;
  const Component component = file.child("padding");
  component.allow_only({"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"});
  StoredPadding stored;
  const Component strategy = component.child("strategy");
  if (strategy.json().is_object()) {
    strategy.allow_only({"Fixed"});
    strategy.child("Fixed");
    stored.fixed_length = strategy.count("Fixed", 0);
  } else if (strategy.as_text() != "BatchLongest") {
    strategy.refuse_value("\"BatchLongest\" or {\"Fixed\": length}");
  }
  stored.direction = read_direction(component.child("direction"));
  stored.pad_to_multiple_of = component.count("pad_to_multiple_of", 0);
  stored.pad_id = component.id("pad_id");
  stored.pad_type_id = component.id("pad_type_id");
  stored.pad_token = component.text("pad_token");
  return stored;
}

// Pieces stay bytes if the model can read bytes; otherwise the last step turns them into characters.
void agree_on_bytes(PreTokenizers& pre_tokenizers, Bpe& model) {
  if (pre_tokenizers.ends_in_bytes && !model.read_bytes()) pre_tokenizers.steps.push_back(make_byte_mapper());
}

Component child_or_null(const Component& file, std::string_view key) {
  static const Json null;
  return file.has(key) ? file.child(key) : Component(null, file.where());
}

// The name of a special token: a string, or an object that describes one.
std::optional<std::string> special_name(const Component& component, std::string_view key) {
  if (!component.has(key)) return std::nullopt;
  const Component value = component.child(key);
  return value.json().is_object() ? value.text("content") : value.as_text();
}

// tokenizer_config.json, then special_tokens_map.json, which wins where they differ (as in transformers 4).
void read_names(const fs::path& folder, TokenizerParts& parts) {
  std::optional<std::string> names[3];
  static constexpr const char* kKeys[3] = {"eos_token", "bos_token", "pad_token"};
  for (const char* file_name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const fs::path path = folder / file_name;
    if (!fs::exists(path)) continue;
    const Json json = read_json_file(path);
    const Component component(json, path.string() + ":");
    for (std::size_t i = 0; i < 3; ++i) {
      if (auto name = special_name(component, kKeys[i])) names[i] = std::move(name);
    }
    if (!component.has("padding_side")) continue;
    const std::string side = component.text("padding_side");
    if (side != "left" && side != "right") component.child("padding_side").refuse_value("left or right");
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

TokenizerParts read_vocab_and_merges(const fs::path& vocab, const fs::path& merges) {
  const std::string vocab_text = read_file(vocab), merges_text = read_file(merges);
  const Json json = parse_json(vocab_text, vocab.string());
  Bpe model(read_vocabulary(Component(json, vocab.string())), parse_merges(merges_text, merges.string()), {},
            merges.string());
  if (const fs::path extra = vocab.parent_path() / "added_tokens.json"; fs::exists(extra)) {
    throw UsageError(extra.string() + ": not supported without a tokenizer.json; save the tokenizer as one");
  }
  bool add_prefix_space = false;
  std::vector<AddedToken> added;
  std::string config_text;
  if (const fs::path config = vocab.parent_path() / "tokenizer_config.json"; fs::exists(config)) {
    const Json settings = parse_json(config_text = read_file(config), config.string());
    const Component component(settings, config.string() + ":");
    add_prefix_space = component.flag("add_prefix_space", false);
    added = read_added_tokens_decoder(component, model.vocabulary());
  }
  PreTokenizers pre_tokenizers = byte_level_pre_tokenizers(add_prefix_space, true);
  agree_on_bytes(pre_tokenizers, model);
  if (model.vocabulary().id_of(kEndOfText)) added.push_back({kEndOfText, false, false, false, false, true});
  AddedTokens added_tokens(added, model.vocabulary(), nullptr);
  return {.model = std::move(model),
          .normalizer = nullptr,
          .pre_tokenizers = std::move(pre_tokenizers),
          .added_tokens = std::move(added_tokens),
          .post_processor = {},
          .decoder = make_byte_level_decoder(),
          .truncation = {},
          .padding = {},
          .content_hash = hash_of({kEncodingVersion, hash_of({config_text}), hash_of({vocab_text}), merges_text}),
          .eos_id = {},
          .bos_id = {},
          .pad_id = {}};
}

}  // namespace

std::optional<std::int32_t> TokenizerParts::id_of(std::string_view token) const {
  const auto id = added_tokens.id_of(token);
  return id ? id : model.vocabulary().id_of(token);
}

TokenizerParts read_tokenizer_json(std::string_view text, const std::string& origin) {
  const Json json = parse_json(text, origin);
  const Component file(json, origin + ":");
  file.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                   "decoder", "model"});
  if (file.has("version") && file.text("version") != "1.0") file.child("version").refuse_value("\"1.0\"");
  Bpe model = read_bpe(file.child("model"));
  auto normalizer = read_normalizer(child_or_null(file, "normalizer"));
  PreTokenizers pre_tokenizers = read_pre_tokenizers(child_or_null(file, "pre_tokenizer"));
  agree_on_bytes(pre_tokenizers, model);
  AddedTokens added_tokens = read_added_tokens(file, model.vocabulary(), normalizer.get());
  return {.model = std::move(model),
          .normalizer = std::move(normalizer),
          .pre_tokenizers = std::move(pre_tokenizers),
          .added_tokens = std::move(added_tokens),
          .post_processor = read_post_processor(child_or_null(file, "post_processor")),
          .decoder = read_decoder(child_or_null(file, "decoder")),
          .truncation = read_truncation(file),
          .padding = read_padding(file),
          .content_hash = hash_of({kEncodingVersion, text}),
          .eos_id = {},
          .bos_id = {},
          .pad_id = {}};
}

TokenizerParts read_tokenizer(const fs::path& path) {
  if (!fs::is_directory(path)) {
    TokenizerParts parts = read_tokenizer_json(read_file(path), path.string());
    read_names(path.parent_path(), parts);
    return parts;
  }
  const fs::path whole = path / "tokenizer.json", vocab = path / "vocab.json", merges = path / "merges.txt";
  if (fs::exists(whole)) return read_tokenizer(whole);
  if (!fs::exists(vocab) || !fs::exists(merges)) {
    throw UsageError(
        fmt::format("{}: this folder has neither tokenizer.json nor vocab.json with merges.txt", path.string()));
  }
  TokenizerParts parts = read_vocab_and_merges(vocab, merges);
  read_names(path, parts);
  return parts;
}

}  // namespace tessera::internal
