#include "experiment/import/sbatch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/quantity.h"
#include "core/shell_words.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::string_view kMark = "#SBATCH";

std::string long_slurm_name(char letter) {
  static const std::vector<std::string> names = {
      "A account",       "a array",      "b begin",      "c cpus-per-task", "C constraint",
      "D chdir",         "d dependency", "e error",      "G gpus",          "i input",
      "J job-name",      "k no-kill",    "L licenses",   "M clusters",      "m distribution",
      "N nodes",         "n ntasks",     "o output",     "p partition",     "q qos",
      "s oversubscribe", "t time",       "w nodelist",   "x exclude",       "K kill-on-bad-exit",
      "l label",         "u unbuffered", "O overcommit", "E preserve-env",  "v verbose",
      "Q quiet",         "H hold",       "W wait",       "r relative",      "I immediate"};
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name[0] == letter; });
  return found == names.end() ? std::string(1, letter) : found->substr(2);
}

bool takes_slurm_value(const std::string& name) {
  static const std::set<std::string> flags = {
      "exclusive",    "requeue",    "no-requeue",   "oversubscribe",    "parsable",
      "hold",         "contiguous", "overcommit",   "overlap",          "label",
      "unbuffered",   "verbose",    "quiet",        "no-kill",          "pty",
      "spread-job",   "multi-prog", "preserve-env", "kill-on-bad-exit", "use-min-nodes",
      "get-user-env", "ignore-pbs", "reboot",       "disable-status",   "no-allocate",
      "exact",        "immediate"};
  return !flags.contains(name);
}

class AllocationReader {
 public:
  AllocationReader(Allocation& allocation, Remarks& remarks) : allocation_(allocation), remarks_(remarks) {}

  void read(const SbatchOption& option) {
    option_ = &option;
    remarks_.place = option.place;
    const std::string& name = option.name;
    Allocation& a = allocation_;
    if (name == "nodes") return take(a.nodes, slurm_count, "a number of nodes");
    if (name == "ntasks") return take(a.tasks, slurm_count, "a number of tasks");
    if (name == "ntasks-per-node" || name == "tasks-per-node") return take(a.tasks_per_node, slurm_count, "a number");
    if (name == "cpus-per-task") return take(a.cpus_per_task, slurm_count, "a number of CPUs");
    if (name == "gpus-per-node") return take(a.gpus_per_node, slurm_gpus, "[type:]number");
    if (name == "gpus-per-task") return take(a.gpus_per_task, slurm_gpus, "[type:]number");
    if (name == "gpus") return take(a.gpus, slurm_gpus, "[type:]number");
    if (name == "gres") return take_gres();
    if (name == "mem") return take(a.megabytes, slurm_megabytes, "a size such as 64G");
    if (name == "mem-per-cpu") return take(a.megabytes_per_cpu, slurm_megabytes, "a size such as 8G");
    if (name == "mem-per-gpu") return take(a.megabytes_per_gpu, slurm_megabytes, "a size such as 64G");
    if (name == "time") return take_time();
    if (name == "job-name") return take_text(a.job_name, "job_name");
    if (name == "output") return take_log();
    leave(name);
  }

 private:
  std::string shown() const {
    return option_->value.empty() ? "--" + option_->name
                                  : fmt::format("--{}={}", option_->name, printable(option_->value, 60));
  }
  void remark(Remark::Kind kind, const std::string& why) { remarks_.add(kind, shown(), why); }
  [[noreturn]] void refuse(const std::string& expected) const {
    throw UsageError(fmt::format("{}: {}: expected {}", remarks_.place, shown(), expected));
  }

  template <typename Number>
  void take(std::optional<Number>& place, std::optional<Number> (*parse)(std::string_view), const char* expected) {
    place = parse(option_->value);
    if (!place) refuse(expected);
    remark(Remark::Kind::kTaken, "resources");
  }

  void take_gres() {
    const auto found = slurm_gres_gpus(option_->value);
    if (!found)
      return remark(Remark::Kind::kSite, "not a number of GPUs: add it to the site file's free #SBATCH lines");
    allocation_.gpus_per_node = found;
    remark(Remark::Kind::kTaken, std::count(option_->value.begin(), option_->value.end(), ':') > 1
                                     ? "resources: the number; the type of GPU belongs to the site file"
                                     : "resources");
  }

  void take_time() {
    const std::string word = lower_case(option_->value);
    if (word == "unlimited" || word == "infinite") {
      return remark(Remark::Kind::kNotNeeded, "no limit is what the partition gives by itself");
    }
    const auto found = slurm_time(option_->value);
    if (!found) refuse("minutes, HH:MM:SS or D-HH:MM:SS");
    allocation_.time = *found;
    remark(Remark::Kind::kTaken, "resources: time " + *found);
  }

  void take_text(std::string& place, const char* resource) {
    if (option_->value.empty()) refuse("a value");
    place = option_->value;
    remark(Remark::Kind::kTaken, fmt::format("resources: {}", resource));
  }

  void take_log() {
    const std::string& log = option_->value;
    bool is_usable = !log.starts_with('/') && log.find("..") == std::string::npos;
    for (std::size_t at = log.find('%'); at != std::string::npos; at = log.find('%', at + 1)) {
      is_usable = is_usable && at + 1 < log.size() && (log[at + 1] == 'x' || log[at + 1] == 'j');
    }
    if (is_usable) return take_text(allocation_.log, "log");
    remark(Remark::Kind::kNotNeeded, "the log lies in the run's folder, with %x and %j in its name");
  }

  void leave(const std::string& name) {
    static const std::set<std::string> of_the_site = {"partition", "account",  "constraint", "reservation",
                                                      "qos",       "nodelist", "exclude",    "clusters",
                                                      "licenses",  "prefer",   "switches",   "wckey"};
    static const std::map<std::string, const char*> not_needed = {
        {"error", "one log holds both streams"},
        {"mail-type", "add it to the site file's free #SBATCH lines"},
        {"mail-user", "add it to the site file's free #SBATCH lines"},
        {"requeue", "submitted experiments are requeued on a signal"},
        {"signal", "submitted experiments are requeued on a signal"},
        {"export", "the experiment's environment is exported"},
        {"open-mode", "every run has its own log"},
        {"chdir", "a run starts in its own folder"}};
    if (of_the_site.contains(name)) return remark(Remark::Kind::kSite, "a fact of the cluster");
    if (const auto reason = not_needed.find(name); reason != not_needed.end()) {
      return remark(Remark::Kind::kNotNeeded, reason->second);
    }
    remark(Remark::Kind::kSite, "not understood: add it to the site file's free #SBATCH lines if the job needs it");
  }

  Allocation& allocation_;
  Remarks& remarks_;
  const SbatchOption* option_ = nullptr;
};

// sbatch reads quotes and backslashes but knows nothing of a shell's other characters: --constraint=a100&nvlink
std::string without_shell_meaning(std::string_view line) {
  std::string escaped;
  char quote = '\0';
  for (const char c : line) {
    const bool opens_or_closes = (c == '"' || c == '\'') && (quote == '\0' || quote == c);
    if (opens_or_closes) quote = quote == '\0' ? c : '\0';
    const std::string_view special = quote == '\0' ? "&|;()<>$`" : quote == '"' ? "$`" : "";
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool is_sbatch_line(std::string_view line) {
  return line.starts_with(kMark) &&
         (line.size() == kMark.size() || line[kMark.size()] == ' ' || line[kMark.size()] == '\t');
}

constexpr long long kMostSlurmNumber = 100'000'000;

std::optional<long long> slurm_number(std::string_view text) {
  const auto number = parse_integer(text);
  return number && *number >= 0 && *number <= kMostSlurmNumber ? number : std::nullopt;
}

// The number behind the last colon, 1 where there is none: a100:4, a100.
std::optional<int> gpus_of_piece(const std::string& piece) {
  const std::string text = piece.substr(0, piece.find('('));  // gpu:4(S:0-1)
  const std::size_t colon = text.rfind(':');
  const auto number = slurm_number(text.substr(colon == std::string::npos ? 0 : colon + 1));
  if (number) return static_cast<int>(*number);
  const bool is_type = !text.empty() && text.find_first_not_of("0123456789") != std::string::npos;
  return is_type ? std::optional(1) : std::nullopt;
}

}  // namespace

bool has_sbatch_lines(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    if (is_sbatch_line(line)) return true;
  }
  return false;
}

std::vector<SbatchOption> take_slurm_options(const std::vector<std::string>& words, std::size_t& at) {
  std::vector<SbatchOption> options;
  const auto next_value = [&]() -> std::string { return at < words.size() ? words[at++] : ""; };
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at++];
    SbatchOption option;
    if (word == "--") break;
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      option.name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
      std::replace(option.name.begin(), option.name.end(), '_', '-');
      if (equals != std::string::npos) option.value = word.substr(equals + 1);
      if (equals == std::string::npos && takes_slurm_value(option.name)) option.value = next_value();
    } else {
      option.name = long_slurm_name(word[1]);
      const std::size_t begin = word.size() > 2 && word[2] == '=' ? 3 : 2;
      option.value = word.size() > 2 ? word.substr(begin) : takes_slurm_value(option.name) ? next_value() : "";
    }
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<SbatchOption> read_sbatch_lines(std::string_view text, const std::string& origin, Remarks& remarks) {
  std::vector<SbatchOption> options;
  bool has_commands = false;
  std::size_t number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (!is_sbatch_line(line)) {
      has_commands = has_commands || (!line.empty() && line[0] != '#');
      continue;
    }
    const std::string place = fmt::format("{}:{}", origin, number);
    if (has_commands) {
      remarks.all.push_back(
          {Remark::Kind::kLeftOut, place, "#SBATCH", "it stands behind the first command, where sbatch ignores it"});
      continue;
    }
    std::vector<std::string> words;
    for (const ShellCommand& command : split_shell(without_shell_meaning(line.substr(kMark.size())), place)) {
      for (const ShellWord& word : command.words) words.push_back(word.plain().value_or(""));
    }
    std::size_t at = 0;
    for (SbatchOption& option : take_slurm_options(words, at)) {
      option.place = place;
      options.push_back(std::move(option));
    }
    if (at < words.size()) {
      throw UsageError(fmt::format("{}: expected an option of sbatch, found '{}'", place, printable(words[at], 40)));
    }
  }
  return options;
}

int Allocation::num_tasks_per_node() const {
  if (tasks_per_node) return *tasks_per_node;
  return tasks ? std::max(1, *tasks / num_nodes()) : 1;
}

std::optional<int> Allocation::num_gpus_per_node() const {
  if (gpus_per_node) return gpus_per_node;
  if (gpus_per_task) return *gpus_per_task * num_tasks_per_node();
  if (gpus) return std::max(1, *gpus / num_nodes());
  return std::nullopt;
}

void read_allocation(const std::vector<SbatchOption>& options, Allocation& allocation, Remarks& remarks) {
  AllocationReader reader(allocation, remarks);
  for (const SbatchOption& option : options) reader.read(option);
}

std::optional<std::string> slurm_time(std::string_view text) {
  const auto parsed = slurm_seconds(text);
  if (!parsed) return std::nullopt;
  const long long seconds = *parsed;
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? clock : fmt::format("{}-{}", seconds / 86400, clock);
}

std::optional<long long> slurm_megabytes(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::size_t unit = std::string_view("KMGT").find(static_cast<char>(text.back() & ~0x20));
  const bool has_unit = text.back() > '9' && unit != std::string_view::npos;
  const auto number = slurm_number(has_unit ? text.substr(0, text.size() - 1) : text);
  if (!number) return std::nullopt;
  if (!has_unit) return *number;
  if (unit == 0) return (*number + 1023) / 1024;
  return *number << (10 * (unit - 1));
}

std::string megabytes_text(long long megabytes) {
  if (megabytes == 0) return "0";
  return megabytes % 1024 == 0 ? fmt::format("{}G", megabytes / 1024) : fmt::format("{}M", megabytes);
}

std::optional<int> slurm_count(std::string_view text) {
  const auto number = slurm_number(text.substr(0, text.find('-')));
  return number && *number >= 1 && *number <= 1'000'000 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<int> slurm_gpus(std::string_view text) {
  int total = 0;
  for (const std::string& piece : split(text, ',')) {
    const auto gpus = gpus_of_piece(piece);
    if (!gpus) return std::nullopt;
    total += *gpus;
  }
  return total;
}

std::optional<int> slurm_gres_gpus(std::string_view text) {
  std::vector<std::string> gpus;
  for (std::string piece : split(text, ',')) {
    if (piece.starts_with("gres/") || piece.starts_with("gres:")) piece.erase(0, 5);
    if (piece == "gpu" || piece.starts_with("gpu:")) gpus.push_back(piece);
  }
  return gpus.empty() ? std::nullopt : slurm_gpus(join(gpus, ","));
}

}  // namespace tessera
