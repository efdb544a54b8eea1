#include "data/tokenizer/sentencepiece.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/metaspace.h"
#include "data/tokenizer/protobuf.h"

namespace tessera::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpaceMark = "\u2581";
constexpr const char* kDecoder = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
constexpr const char* kDecoderWithoutPrefix = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})";

SentencePieceModel::Piece parse_piece(std::string_view bytes, const std::string& origin) {
  SentencePieceModel::Piece piece;
  ProtobufReader reader(bytes, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 3) piece.type = static_cast<int>(field->value);
  }
  if (piece.text.empty() || num_well_formed_bytes(piece.text) != piece.text.size()) {
    throw UsageError(fmt::format("{}: the piece \"{}\" is no text", origin, printable(piece.text, 60)));
  }
  return piece;
}

Vocabulary vocabulary_of(const SentencePieceModel& model, const std::string& origin) {
  Vocabulary vocabulary;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (vocabulary.id_of(piece.text)) {
      throw UsageError(fmt::format("{}: the piece \"{}\" stands in it twice", origin, printable(piece.text, 60)));
    }
    vocabulary.add(piece.text, vocabulary.end_id());
  }
  return vocabulary;
}

// In the order of the tokens that they make, the shortest left part first.
MergePairs merges_of(const SentencePieceModel& model, const Vocabulary& vocabulary) {
  MergePairs merges;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    const std::string_view text = piece.text;
    for (std::size_t at = 0; (at += utf8_length(static_cast<unsigned char>(text[at]))) < text.size();) {
      const std::string_view left = text.substr(0, at), right = text.substr(at);
      if (vocabulary.id_of(left) && vocabulary.id_of(right)) merges.emplace_back(left, right);
    }
  }
  return merges;
}

// What tokenizer_config.json says about a LlamaTokenizer.
struct LlamaSettings {
  PrependScheme prepend_scheme = PrependScheme::kFirst;
  std::string bos = "<s>", eos = "</s>", unk = "<unk>";
  bool adds_bos = false, adds_eos = false;
};

// Tokens that the file adds to the model's would need transformers' rules for their ids and flags.
void refuse_added_tokens(const JsonReader& config, const Vocabulary& vocabulary, const std::string& advice) {
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    if (const auto tokens = config.find(key); tokens && !tokens->json().empty()) tokens->refuse(advice);
  }
  const auto decoder = config.find("added_tokens_decoder");
  if (!decoder) return;
  for (const auto& [key, token] : decoder->members()) {
    const auto id = vocabulary.id_of(token.text("content"));
    const bool is_special = token.boolean("special", false);
    const bool has_flags = token.boolean("lstrip", false) || token.boolean("rstrip", false) ||
                           token.boolean("single_word", false) || token.boolean("normalized", !is_special);
    if (!id || std::to_string(*id) != key || !is_special || has_flags) token.refuse(advice);
  }
}

std::string token_name(const JsonReader& config, const char* key, const std::string& preset) {
  const auto value = config.find(key);
  if (!value) return preset;
  return value->is_object() ? value->text("content") : value->as_text();
}

LlamaSettings read_settings(const JsonReader& config, const Vocabulary& vocabulary, const std::string& advice) {
  const std::string type = config.text("tokenizer_class", "");
  if (type != "LlamaTokenizer" && type != "LlamaTokenizerFast") {
    config.refuse(fmt::format("tokenizer.model can only be read for tokenizer_class LlamaTokenizer, not \"{}\"; {}",
                              printable(type, 60), advice));
  }
  refuse_added_tokens(config, vocabulary, "not supported beside a tokenizer.model; " + advice);
  LlamaSettings settings;
  if (config.boolean("legacy", false)) settings.prepend_scheme = PrependScheme::kAlways;
  if (!config.boolean("add_prefix_space", true)) settings.prepend_scheme = PrependScheme::kNever;
  settings.bos = token_name(config, "bos_token", settings.bos);
  settings.eos = token_name(config, "eos_token", settings.eos);
  settings.unk = token_name(config, "unk_token", settings.unk);
  settings.adds_bos = config.boolean("add_bos_token", false);
  settings.adds_eos = config.boolean("add_eos_token", false);
  return settings;
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& origin) {
  SentencePieceModel model;
  ProtobufReader reader(bytes, origin);
  while (const auto field = reader.next()) {
    if (field->number == 1) model.pieces.push_back(parse_piece(field->bytes, origin));
    if (field->number != 2 && field->number != 3) continue;
    ProtobufReader spec(field->bytes, origin);
    while (const auto item = spec.next()) {
      if (field->number == 2 && item->number == 3) model.kind = static_cast<int>(item->value);
      if (field->number == 3 && item->number == 2) model.has_character_map = !item->bytes.empty();
    }
  }
  if (model.pieces.empty()) throw UsageError(origin + ": not a SentencePiece model: it has no pieces");
  return model;
}

std::string how_to_convert(const fs::path& folder, const std::string& options) {
  return fmt::format(
      "make a tokenizer.json of it: python3 -c \"from transformers import AutoTokenizer; "
      "AutoTokenizer.from_pretrained('{0}'{1}).save_pretrained('{0}')\"",
      folder.empty() ? "." : folder.string(), options);
}

TokenizerParts read_sentencepiece(const fs::path& path) {
  const std::string origin = path.string(), advice = how_to_convert(path.parent_path());
  const SentencePieceModel model = parse_sentencepiece(read_file(path), origin);
  if (model.kind != SentencePieceModel::kBpe) {
    throw UsageError(origin + ": only BPE models are supported, and this one is Unigram, words or characters");
  }
  if (model.has_character_map) {
    throw UsageError(fmt::format("{}: models with a normal form of their own cannot be read; {}", origin, advice));
  }
  Vocabulary vocabulary = vocabulary_of(model, origin);
  const fs::path config_path = path.parent_path() / "tokenizer_config.json";
  const JsonText config(fs::exists(config_path) ? read_file(config_path) : "{}", config_path.string());
  const LlamaSettings settings = read_settings(config.root(), vocabulary, advice);

  std::vector<AddedToken> added;
  const auto add = [&added](const std::string& text) { added.push_back({text, false, false, false, false, true}); };
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type == SentencePieceModel::kControl || piece.type == SentencePieceModel::kUserDefined) add(piece.text);
  }
  for (const std::string& name : {settings.unk, settings.bos, settings.eos}) {
    if (!vocabulary.id_of(name)) {
      throw UsageError(fmt::format("{}: it has no token \"{}\"; {}", origin, printable(name, 60), advice));
    }
    add(name);
  }
  PostProcessor post_processor;
  const std::int32_t bos = *vocabulary.id_of(settings.bos), eos = *vocabulary.id_of(settings.eos);
  if (settings.adds_bos) post_processor.single.insert(post_processor.single.begin(), bos);
  if (settings.adds_eos) post_processor.single.push_back(eos);

  const bool has_prefix = settings.prepend_scheme != PrependScheme::kNever;
  PreTokenizers pre_tokenizers;
  pre_tokenizers.steps.emplace_back([metaspace = Metaspace{kSpaceMark, settings.prepend_scheme, /*splits=*/false}](
                                        Pieces& pieces) { mark_spaces(metaspace, pieces); });
  const JsonText decoder(has_prefix ? kDecoder : kDecoderWithoutPrefix, "LlamaTokenizer");
  const MergePairs merges = merges_of(model, vocabulary);
  BpeSettings bpe_settings;
  bpe_settings.fuse_unk = bpe_settings.byte_fallback = true;
  AddedTokens added_tokens(added, vocabulary, nullptr);
  return {.model = Bpe(std::move(vocabulary), merges, std::move(bpe_settings), origin),
          .normalizer = nullptr,
          .pre_tokenizers = std::move(pre_tokenizers),
          .added_tokens = std::move(added_tokens),
          .post_processor = std::move(post_processor),
          .decoder = read_decoder(decoder.root()),
          .content_hash = {},
          .eos_id = eos,
          .bos_id = bos};
}

}  // namespace tessera::internal
