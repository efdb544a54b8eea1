// The command line of a Schema, cut into settings and words.
//
// Written by hand instead of with CLI11, because three things that users do depend on more than an option's own
// declaration: a boolean takes the next word only if that word is a boolean (`--use_env train` must leave 'train'
// alone), underscores and hyphens are the same in names but not in what follows a launched program, and a value that is
// another option's name is a forgotten value.
#include <fmt/format.h>

#include <optional>

#include "config/schema.h"
#include "core/error.h"
#include "core/output.h"

namespace tessera {

namespace {

constexpr const char* kOrigin = "command line";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_long_option(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}
bool is_short_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && is_letter(word[1]);
}

}  // namespace

class Schema::CommandLine {
 public:
  CommandLine(Schema& schema, const std::vector<std::string>& arguments) : schema_(schema), arguments_(arguments) {}

  void scan() {
    while (next_ < arguments_.size()) {
      const std::string& word = arguments_[next_++];
      if (word == "--") {
        take_rest();
      } else if (is_long_option(word)) {
        take_long_option(word);
      } else if (word.size() > 1 && word[0] == '-') {
        take_short_option(word);
      } else {
        take_word(word);
      }
    }
  }

  std::vector<Mention> mentions;
  std::vector<std::string> words;
  bool wants_help = false, wants_all = false, wants_docs = false, wants_print_config = false;

 private:
  void take_long_option(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const std::optional<std::string> attached =
        equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1));
    if (Setting* setting = schema_.find(name)) {
      take_setting(*setting, "--" + name, attached);
    } else if (Setting* negated = find_negated(name)) {
      refuse_value("--" + name, attached);
      mentions.push_back({negated, "false", kOrigin, "--" + name.substr(3)});  // the same name, negated
    } else if (name == "help") {
      if (attached != "markdown") refuse_value("--help", attached);
      if (attached) {
        wants_docs = true;
      } else {
        take_help();
      }
    } else if (name == "print_config" || name == "print-config") {
      refuse_value("--print_config", attached);
      wants_print_config = true;
    } else {
      schema_.refuse_unknown("--" + name, "--", kOrigin);  // without the value: it may be a secret
    }
  }

  void take_help() {
    wants_help = true;
    if (next_ == arguments_.size() || arguments_[next_] != "all") return;
    wants_all = true;
    ++next_;
  }

  void take_short_option(const std::string& word) {
    if (word == "-h") return take_help();
    Setting* setting = find_short(word[1]);
    if (setting == nullptr) schema_.refuse_unknown(word.substr(0, word.find('=')), "--", kOrigin);
    const std::size_t value = word.substr(2, 1) == "=" ? 3 : 2;
    take_setting(*setting, word.substr(0, 2), word.size() > 2 ? std::optional(word.substr(value)) : std::nullopt);
  }

  // `name` as it was written: --iters, -n.
  void take_setting(Setting& setting, const std::string& name, const std::optional<std::string>& attached) {
    if (attached) {
      mentions.push_back({&setting, *attached, kOrigin, name});
    } else if (setting.kind_ == Setting::Kind::kBool) {
      mentions.push_back({&setting, takes_next_as_bool() ? arguments_[next_++] : "true", kOrigin, name});
    } else if (next_ < arguments_.size() && !is_option(arguments_[next_])) {
      mentions.push_back({&setting, arguments_[next_++], kOrigin, name});
    } else {
      const std::string hint =
          next_ < arguments_.size()
              ? fmt::format(" (a value that begins with a dash is written --{}=VALUE)", setting.name())
              : "";
      throw UsageError(fmt::format("{} ({}): expected {}, found no value{}", name, kOrigin, setting.allowed(), hint));
    }
  }

  // If the command takes no words, the next word can only be meant for the setting, so the setting should refuse it.
  bool takes_next_as_bool() const {
    if (next_ == arguments_.size()) return false;
    const std::string& word = arguments_[next_];
    return parse_bool(word) || (schema_.positionals_ == nullptr && !word.starts_with('-'));
  }

  // Whether a word in the place of a value is the next option instead. -1, -.5, - and -x (unless declared) are values:
  // the setting decides whether they are valid.
  bool is_option(const std::string& word) const {
    return word == "--" || is_long_option(word) || word == "-h" ||
           (is_short_option(word) && find_short(word[1]) != nullptr);
  }

  void take_word(const std::string& word) {
    if (schema_.positionals_ == nullptr) {
      const bool is_name = !word.empty() && schema_.find(word) != nullptr;
      throw UsageError(fmt::format("unexpected word '{}' ({}); {}", word, kOrigin,
                                   is_name ? fmt::format("did you mean --{}?", word) : advice_on_word()));
    }
    words.push_back(word);
    if (schema_.positionals_take_rest_) take_rest();
  }

  std::string advice_on_word() const {
    const std::string help = fmt::format("see {} --help", schema_.command_);
    if (mentions.empty() || !mentions.back().setting->traits_.is_list) return help;
    return fmt::format("{} takes several values with commas between them; {}", mentions.back().name, help);
  }

  void take_rest() {
    if (schema_.positionals_ == nullptr && next_ < arguments_.size()) take_word(arguments_[next_]);
    words.insert(words.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(next_), arguments_.end());
    next_ = arguments_.size();
  }

  Setting* find_short(char letter) const {
    for (Setting& setting : schema_.settings_) {
      if (setting.traits_.short_name == letter) return &setting;
    }
    return nullptr;
  }

  Setting* find_negated(const std::string& name) const {
    if (!name.starts_with("no_") && !name.starts_with("no-")) return nullptr;
    Setting* setting = schema_.find(name.substr(3));
    return setting != nullptr && setting->kind_ == Setting::Kind::kBool ? setting : nullptr;
  }

  static void refuse_value(const std::string& option, const std::optional<std::string>& attached) {
    if (attached) throw UsageError(fmt::format("{} ({}): expected no value, found '{}'", option, kOrigin, *attached));
  }

  Schema& schema_;
  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
};

bool Schema::read_command_line(const std::vector<std::string>& arguments) {
  check_names();
  CommandLine line(*this, arguments);
  line.scan();
  if (line.wants_help || line.wants_docs) {
    print_out(line.wants_docs ? docs_table() : help_text(line.wants_all));
    return false;
  }
  assign(line.mentions, Source::kCommandLine);
  if (positionals_ != nullptr) *positionals_ = std::move(line.words);
  wants_print_config_ = line.wants_print_config;
  return true;
}

}  // namespace tessera
