#include "data/text/sft_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::string_view kAlpacaTask =
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.";

std::string content_of(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string() ? content->get<std::string>() : std::string();
}

[[noreturn]] void refuse_without_template() {
  throw UsageError(
      "a conversation needs a chat template, and the tokenizer has none: give --chat_template_path FILE, a template or "
      "a folder whose tokenizer has one");
}

// One instruction, perhaps with a system text, as Alpaca's models were asked.
std::string alpaca_prompt(const Json& messages) {
  const bool has_system = messages.size() == 2 && messages[0].at("role") == "system";
  if ((messages.size() != 1 && !has_system) || messages.back().at("role") != "user") refuse_without_template();
  const std::string task = has_system ? content_of(messages[0]) : std::string(kAlpacaTask);
  return fmt::format("{}\n\n### Instruction:\n{}\n\n### Response:\n", task, content_of(messages.back()));
}

Json joined(Json messages, const Json& more) {
  for (const Json& message : more) messages.push_back(message);
  return messages;
}

std::size_t common_length(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

SftEncoder::SftEncoder(const Tokenizer& tokenizer, const std::optional<FoundTemplate>& chat, Json special_tokens,
                       SftOptions options)
    : tokenizer_(tokenizer),
      chat_text_(chat ? chat->text : "none"),
      special_tokens_(std::move(special_tokens)),
      end_token_(special_tokens_.value("eos_token", "")),
      options_(options) {
  if (chat) chat_ = ChatTemplate::of_text(chat->text, chat->origin);
}

std::string SftEncoder::description() const {
  return fmt::format("sft 2 length {} {} completion {} assistant {} special {} template {}", options_.max_length,
                     static_cast<int>(options_.overflow), options_.completion_only, options_.assistant_only,
                     special_tokens_.dump(), chat_text_);
}

std::string SftEncoder::rendered(const TrainingRow& row, const Json& messages, bool asks_for_answer,
                                 std::vector<ByteRange>* generated) const {
  Json variables = special_tokens_;
  variables["messages"] = messages_for_template(messages);
  variables["tools"] = row.tools;
  variables["add_generation_prompt"] = asks_for_answer;
  if (row.chat_template_kwargs.is_object()) variables.update(row.chat_template_kwargs);
  RenderedChat chat = chat_->render(variables);
  if (generated != nullptr) {
    if (!chat.generated_is_exact) {
      throw UsageError("the chat template marks {% generation %} within a macro or block, where its place is not told");
    }
    *generated = std::move(chat.generated);
  }
  return std::move(chat.text);
}

// A turn's last token ends it; white space behind that belongs to the template.
std::size_t SftEncoder::end_of_turn(std::string_view turn) const {
  const std::size_t end = turn.find_last_not_of(" \t\r\n") + 1;
  const std::vector<std::int32_t> ids = tokenizer_.encode(turn.substr(0, end), false);
  return !ids.empty() && tokenizer_.is_added(ids.back()) ? end : turn.size();
}

// Many templates read the first message, and so refuse what is before an answer that nobody asked for.
std::string SftEncoder::text_before_answer(const TrainingRow& row, const Json& before) const {
  try {
    return rendered(row, before, true);
  } catch (const UsageError& error) {
    if (!before.empty()) throw;
    throw UsageError(fmt::format(
        "it begins with the assistant, and the chat template does not tell where a first turn of the assistant begins "
        "({}). Use a template that marks it with {{% generation %}} (--chat_template_path), or --assistant_only_loss "
        "false",
        error.what()));
  }
}

std::vector<ByteRange> SftEncoder::assistant_turns(const TrainingRow& row, const Json& messages,
                                                   const std::string& whole) const {
  std::vector<ByteRange> turns;
  Json before = Json::array();
  for (const Json& message : messages) {
    const bool counts = message.at("role") == "assistant";
    const std::string begun = counts ? text_before_answer(row, before) : std::string();
    before.push_back(message);
    if (!counts) continue;
    const std::string ended = rendered(row, before, false);
    if (!ended.starts_with(begun) || !whole.starts_with(ended)) {
      throw UsageError(fmt::format(
          "where turn {} of the assistant begins and ends cannot be told: the chat template writes it another way "
          "once more turns follow. Use a template that marks them with {{% generation %}} (--chat_template_path), or "
          "--assistant_only_loss false",
          turns.size() + 1));
    }
    turns.push_back({begun.size(), begun.size() + end_of_turn(std::string_view(ended).substr(begun.size()))});
  }
  return turns;
}

SftEncoder::Text SftEncoder::text_of(const TrainingRow& row) const {
  Text made;
  const bool has_prompt = !row.prompt.is_null();
  const bool is_conversation = !row.messages.is_null() || row.prompt.is_array();
  if (is_conversation && chat_) {
    const Json messages = has_prompt ? joined(row.prompt, row.completion) : row.messages;
    made.is_rendered = true;
    made.text = rendered(row, messages, false, options_.assistant_only ? &made.assistant : nullptr);
    if (has_prompt) made.prompt = rendered(row, row.prompt, true);
    if (options_.assistant_only && !chat_->marks_generation()) {
      made.assistant = assistant_turns(row, messages, made.text);
    }
    return made;
  }
  if (is_conversation) {
    if (!has_prompt) refuse_without_template();
    const Json messages = joined(row.prompt, row.completion);
    if (messages.empty() || messages.back().at("role") != "assistant") {
      throw UsageError("a prompt without a chat template must be followed by the assistant's answer");
    }
    made.prompt = alpaca_prompt(Json(messages.begin(), messages.end() - 1));
    made.text = *made.prompt + content_of(messages.back());
    made.assistant = {{made.prompt->size(), made.text.size()}};
  } else if (has_prompt) {
    made.prompt = row.prompt.get<std::string>();
    made.text = *made.prompt + row.completion.get<std::string>();
  } else {
    made.text = row.text;
  }
  if (!made.text.ends_with(end_token_)) made.text += end_token_;
  if (!made.assistant.empty()) made.assistant.back().end = made.text.size();
  return made;
}

std::vector<bool> SftEncoder::counted(const Text& text, const std::vector<std::int32_t>& ids) const {
  std::vector<bool> counted(ids.size(), true);
  if (text.prompt && options_.completion_only) {
    const auto num_shared = common_length(tokenizer_.encode(*text.prompt, !text.is_rendered), ids);
    std::fill_n(counted.begin(), num_shared, false);
  }
  if (!options_.assistant_only) return counted;
  if (text.assistant.empty()) throw UsageError("--assistant_only_loss: no part of it is the assistant's");
  const std::vector<bool> is_marked = tokenizer_.encode_marked(text.text, text.assistant).is_marked;
  // Tokens that the tokenizer puts before a text.
  const std::size_t num_added = ids.size() - std::min(ids.size(), is_marked.size());
  for (std::size_t i = 0; i < counted.size(); ++i) {
    counted[i] = counted[i] && i >= num_added && is_marked[i - num_added];
  }
  return counted;
}

std::vector<EncodedRow> SftEncoder::encode(const TrainingRow& row) const {
  const Text text = text_of(row);
  const std::vector<std::int32_t> ids = tokenizer_.encode(text.text, !text.is_rendered);
  const std::vector<bool> counts = counted(text, ids);
  const std::size_t most =
      options_.overflow == SftOverflow::kKeep ? ids.size() : static_cast<std::size_t>(options_.max_length);
  std::vector<EncodedRow> rows;
  for (std::size_t begin = 0; begin < ids.size(); begin += most) {
    const auto first = static_cast<std::ptrdiff_t>(begin);
    const auto end = static_cast<std::ptrdiff_t>(std::min(begin + most, ids.size()));
    EncodedRow part{{ids.begin() + first, ids.begin() + end}, {counts.begin() + first, counts.begin() + end}};
    part.is_truncated = begin == 0 && ids.size() > most;
    // Nothing predicts the first token of a row of its own: a batch of such tokens alone would have no loss.
    const std::ptrdiff_t first_target = options_.overflow == SftOverflow::kKeep ? 0 : 1;
    part.is_dropped = std::find(part.counted.begin() + first_target, part.counted.end(), true) == part.counted.end();
    rows.push_back(std::move(part));
    if (options_.overflow == SftOverflow::kCut) break;
  }
  return rows;
}

}  // namespace tessera
