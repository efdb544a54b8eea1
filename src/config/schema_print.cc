// What a Schema prints about itself: --help, --print_config and the docs table.
#include <fmt/format.h>

#include <algorithm>

#include "config/schema.h"
#include "core/text.h"

namespace tessera {

namespace {

constexpr std::size_t kLineWidth = 100;
constexpr std::size_t kMaxLeftWidth = 36;   // a longer left side has its text on the next line
constexpr std::size_t kMaxValueWidth = 40;  // a longer value pushes only its own origin out of line

const DescribedOption kCommonOptions[] = {
    {.names = {"-h", "--help"}, .help = "this text"},
    {.names = {"--print_config"}, .help = "show every setting's value and where it came from"}};

// The words of `text` in lines that end before kLineWidth, all but the first indented. A word is never cut.
std::string wrap(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (column > indent && column + 1 + word.size() > kLineWidth) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string format_entry(const std::string& left, const std::string& text, std::size_t left_width) {
  const std::size_t indent = left_width + 2;
  const std::string right = wrap(text, indent);
  if (left.size() <= left_width) return fmt::format("{:<{}}  {}\n", left, left_width, right);
  return fmt::format("{}\n{:{}}{}\n", left, "", indent, right);
}

std::string left_of(const DescribedOption& common) {
  return (common.names.size() == 1 ? "      " : "  ") + join(common.names, ", ");
}

// One line, whatever the value holds; an empty value or one with odd ends is quoted, so that it can be seen.
std::string on_one_line(const std::string& value) {
  const bool is_plain = !value.empty() && trim(value).size() == value.size() &&
                        std::ranges::all_of(value, [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  return is_plain ? value : json_text(Json(value));
}

std::string table_cell(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '|') result += '\\';  // it would end the cell, even inside backquotes
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string code_cell(const std::string& text) {
  return text.empty() ? "" : fmt::format("`{}`", table_cell(text));
}

std::string code_list(const std::vector<std::string>& items) {
  return join(texts_of(items, code_cell), ", ");
}

}  // namespace

std::string Setting::help_left() const {
  const std::string short_form = traits_.short_name != 0 ? fmt::format("-{}, ", traits_.short_name) : "    ";
  return fmt::format("  {}--{} {}", short_form, name_, words().placeholder);
}

std::string Setting::help_right() const {
  std::vector<std::string> facts;
  if (!traits_.choices.empty()) {
    facts.push_back("one of " + join(traits_.choices, ", "));
  } else if (!bounds().empty()) {
    facts.push_back(bounds());
  }
  const std::string preset = traits_.preset.value_or("");
  if (!preset.empty()) facts.push_back("default " + (traits_.is_secret ? "(set)" : preset));
  for (const std::string& other : traits_.aliases) facts.push_back("also --" + other);
  if (!traits_.environment.empty()) facts.push_back("env " + join(traits_.environment, ", "));
  if (facts.empty()) return help_;
  return fmt::format("{}{}[{}]", help_, help_.empty() ? "" : " ", join(facts, "; "));
}

std::vector<std::string> Setting::option_names() const {
  std::vector<std::string> names = {"--" + name_};
  if (traits_.short_name != 0) names.push_back(std::string("-") + traits_.short_name);
  for (const std::string& other : traits_.aliases) names.push_back("--" + other);
  return names;
}

DescribedOption Setting::described() const {
  DescribedOption option{
      .names = option_names(), .values = traits_.choices, .variables = traits_.environment, .help = help_};
  if (kind_ != Kind::kBool) {
    const bool may_be_file = kind_ == Kind::kText && traits_.choices.empty();
    option.takes = may_be_file ? DescribedOption::Takes::kText : DescribedOption::Takes::kValue;
  } else if (traits_.preset == "true") {
    option.names.push_back("--no_" + name_);  // the opposite of the default is what somebody would write
  }
  return option;
}

std::string Setting::docs_row() const {
  const std::string shown_preset = traits_.is_secret ? "" : traits_.preset.value_or("");
  const std::string limits = traits_.choices.empty() ? bounds() : code_list(traits_.choices);
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", code_list(option_names()), words().type,
                     code_cell(shown_preset), limits, code_list(traits_.environment), table_cell(help_));
}

std::vector<const Setting*> Schema::shown() const {
  std::vector<const Setting*> result;
  for (const Setting& setting : settings_) {
    if (!setting.traits_.is_hidden || setting.is_set()) result.push_back(&setting);
  }
  return result;
}

Schema::Groups Schema::groups() const {
  Groups groups;
  for (const Setting& setting : settings_) {
    if (setting.is_hidden()) continue;
    auto group = std::ranges::find(groups, setting.group_, [](const auto& each) { return each.first; });
    if (group == groups.end()) group = groups.insert(group, {setting.group_, {}});
    group->second.push_back(&setting);
  }
  return groups;
}

Schema::Groups Schema::most_used_group() const {
  Groups group = {{"Settings that are used most", {}}};
  for (const std::string& name : most_used_) {
    if (const Setting* setting = look_up(name)) group[0].second.push_back(setting);
  }
  return group;
}

std::string Schema::usage() const {
  const std::string words = positional_description_.empty() ? "" : " " + positional_description_;
  return command_ + " [settings]" + words.substr(0, words.find(": "));
}

std::vector<std::string> Schema::verbs() const {
  const std::string first = positional_description_.substr(0, positional_description_.find_first_of(" :"));
  const bool is_fixed =
      !first.empty() && std::ranges::all_of(first, [](char c) { return c == '|' || (c >= 'a' && c <= 'z'); });
  return is_fixed ? split(first, '|') : std::vector<std::string>();
}

std::vector<DescribedOption> Schema::options() const {
  std::vector<DescribedOption> result;
  for (const auto& [title, settings] : groups()) {
    for (const Setting* setting : settings) result.push_back(setting->described());
  }
  result.insert(result.end(), std::begin(kCommonOptions), std::end(kCommonOptions));
  return result;
}

std::string Schema::help_text(bool shows_all) const {
  shows_all = shows_all || most_used_.empty();
  const Groups shown = shows_all ? groups() : most_used_group();
  std::size_t left_width = 0, num_settings = 0;
  bool has_bools = false;
  for (const auto& [title, settings] : shown) {
    for (const Setting* setting : settings) {
      const std::size_t width = setting->help_left().size();
      if (width <= kMaxLeftWidth) left_width = std::max(left_width, width);
      has_bools = has_bools || setting->kind_ == Setting::Kind::kBool;
    }
  }
  for (const DescribedOption& common : kCommonOptions) left_width = std::max(left_width, left_of(common).size());
  for (const auto& [title, settings] : groups()) num_settings += settings.size();

  const std::string words = positional_description_.empty() ? "" : fmt::format(" {}", positional_description_);
  std::string result =
      fmt::format("{}: {}\n\nusage: {} [settings]{}\n", command_, wrap(summary_, command_.size() + 2), command_, words);
  for (const std::string& example : examples_) result += fmt::format("  {}\n", example);
  for (const auto& [title, settings] : shown) {
    result += fmt::format("\n{}:\n", title.empty() ? "Settings" : title);
    for (const Setting* setting : settings) {
      result += format_entry(setting->help_left(), setting->help_right(), left_width);
    }
  }
  result += "\nAlways:\n";
  for (const DescribedOption& common : kCommonOptions) {
    result += format_entry(left_of(common), common.help, left_width);
  }
  if (!shows_all) {
    result += format_entry("      --help all", fmt::format("all {} settings", num_settings), left_width);
  }
  if (has_bools) result += "\n[BOOL]: --name alone means true, --no_name false.\n";
  return result;
}

std::string Schema::config_text() const {
  std::size_t name_width = 0, value_width = 0;
  for (const Setting* setting : shown()) {
    name_width = std::max(name_width, setting->name_.size());
    const std::size_t width = on_one_line(setting->shown_text()).size();
    if (width <= kMaxValueWidth) value_width = std::max(value_width, width);
  }
  std::string result;
  for (const Setting* setting : shown()) {
    result += fmt::format("{:<{}}  {:<{}}  {}\n", setting->name_, name_width, on_one_line(setting->shown_text()),
                          value_width, setting->origin_);
  }
  return result;
}

std::set<std::string> Schema::docs_rows() const {
  std::set<std::string> rows;
  for (const auto& [title, settings] : groups()) {
    for (const Setting* setting : settings) rows.insert(setting->docs_row());
  }
  return rows;
}

std::string Schema::docs_table(const std::set<std::string>& left_out) const {
  std::string result;
  for (const auto& [title, settings] : groups()) {
    std::string rows;
    for (const Setting* setting : settings) {
      if (const std::string row = setting->docs_row(); !left_out.contains(row)) rows += row;
    }
    if (rows.empty()) continue;
    if (!result.empty()) result += "\n";
    if (!title.empty()) result += fmt::format("### {}\n\n", title);
    result +=
        "| setting | type | default | allowed | environment | meaning |\n"
        "| --- | --- | --- | --- | --- | --- |\n";
    result += rows;
  }
  return result;
}

}  // namespace tessera
