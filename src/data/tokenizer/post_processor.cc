#include <fmt/format.h>

#include <map>

#include "core/text.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/steps.h"

namespace tessera::internal {
namespace {

// ["</s>", 2]
std::int32_t id_of_pair(const JsonReader& pair) {
  if (pair.size() != 2) pair.refuse_value("a token and its id");
  pair.at(std::size_t{0}).as_text();
  return as_token_id(pair.at(1));
}

std::map<std::string, std::vector<std::int32_t>> read_special_tokens(const JsonReader& component) {
  std::map<std::string, std::vector<std::int32_t>> tokens;
  for (const auto& [name, token] : component.members()) {
    token.allow_only({"id", "ids", "tokens"});
    std::vector<std::int32_t>& ids = tokens[name];
    for (const JsonReader& id : token.at("ids").items()) ids.push_back(as_token_id(id));
    if (token.at("tokens").size() != ids.size()) token.refuse("\"ids\" and \"tokens\" must have the same length");
  }
  return tokens;
}

PostProcessor read_template(const JsonReader& component) {
  component.allow_only({"type", "single", "pair", "special_tokens"});
  const auto special_tokens = read_special_tokens(component.at("special_tokens"));
  PostProcessor processor;
  processor.single.clear();
  for (const JsonReader& piece : component.at("single").items()) {
    piece.allow_only({"Sequence", "SpecialToken"});
    if (piece.has("Sequence")) {
      if (piece.at("Sequence").text("id") != "A") piece.refuse("a template for one text can only use sequence A");
      processor.single.push_back(PostProcessor::kText);
      continue;
    }
    const std::string name = piece.at("SpecialToken").text("id");
    const auto found = special_tokens.find(name);
    if (found == special_tokens.end()) {
      piece.refuse(fmt::format("\"special_tokens\" does not have \"{}\"", printable(name, 60)));
    }
    processor.single.insert(processor.single.end(), found->second.begin(), found->second.end());
  }
  return processor;
}

PostProcessor read_sequence(const JsonReader& component) {
  component.allow_only({"type", "processors"});
  PostProcessor result;
  bool has_one = false;
  for (const JsonReader& step : component.at("processors").items()) {
    const PostProcessor one = read_post_processor(step);
    if (one.single == PostProcessor{}.single) continue;
    if (has_one) step.refuse("more than one post-processor that adds tokens is not supported");
    has_one = true;
    result = one;
  }
  return result;
}

}  // namespace

std::vector<std::int32_t> PostProcessor::apply(std::vector<std::int32_t> ids, bool add_special_tokens) const {
  if (single.size() == 1 && single[0] == kText) return ids;
  std::vector<std::int32_t> result;
  for (const std::int32_t item : single) {
    if (item == kText) {
      result.insert(result.end(), ids.begin(), ids.end());
    } else if (add_special_tokens) {
      result.push_back(item);
    }
  }
  return result;
}

PostProcessor read_post_processor(const JsonReader& component) {
  if (component.is_null()) return {};
  const std::string type = component.text("type");
  if (type == "ByteLevel") {  // affects only offsets, which we do not return
    component.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  if (type == "TemplateProcessing") return read_template(component);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    component.allow_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    return {{id_of_pair(component.at("cls")), PostProcessor::kText, id_of_pair(component.at("sep"))}};
  }
  if (type == "Sequence") return read_sequence(component);
  component.refuse(
      fmt::format("the post-processor \"{}\" is not supported; supported: TemplateProcessing, ByteLevel, "
                  "RobertaProcessing, BertProcessing, Sequence",
                  printable(type, 60)));
}

}  // namespace tessera::internal
