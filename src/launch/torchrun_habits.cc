#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "launch/settings.h"

namespace tessera {
namespace {

// "3", or "0:3,1:1" by rank.
bool is_tee_value(const std::string& text) {
  const auto parts = split(text, ',');
  return std::ranges::all_of(parts, [&](const std::string& part) {
    const auto colon = part.find(':');
    const auto level = parse_integer(colon == std::string::npos ? part : part.substr(colon + 1));
    const bool is_rank =
        colon == std::string::npos ? parts.size() == 1 : parse_integer(part.substr(0, colon)).has_value();
    return is_rank && level && *level >= 0 && *level <= 3;
  });
}

bool is_any_teed(const std::string& text) {
  const auto parts = split(text, ',');
  return std::ranges::any_of(parts, [](const std::string& part) { return !part.ends_with('0'); });
}

}  // namespace

void declare_habits(Schema& schema, LaunchSettings& s) {
  const char* nothing = "accepted for old scripts; changes nothing";
  schema.group("As in torchrun");
  schema.boolean("use_env", &s.use_env, nothing);
  schema.boolean("no_python", &s.no_python, nothing);
  schema.text("role", &s.role, nothing, {.preset = ""});
  schema.text("monitor_interval", &s.monitor_interval, nothing, {.preset = ""});
  schema.text("start_method", &s.start_method, nothing, {.preset = ""});
  schema.text("local_addr", &s.local_addr, nothing, {.preset = ""});
  schema.boolean("module", &s.module, "refused: launch python -m MODULE", {.short_name = 'm'});
  schema.text("redirects", &s.redirects, "refused: see --log_dir", {.preset = "", .short_name = 'r'});
  schema.text("rdzv_conf", &s.rdzv_conf, "refused: see --start_timeout, --node_timeout and --rdzv_endpoint",
              {.preset = ""});
  schema.text("local_ranks_filter", &s.local_ranks_filter, "refused: see --log_dir", {.preset = ""});
}

void refuse_what_is_done_otherwise(const LaunchSettings& s) {
  if (s.module) throw UsageError("-m, --module: launch a Python module as a program: python -m MODULE ARGS...");
  if (!s.redirects.empty()) {
    throw UsageError("-r, --redirects: use --log_dir FOLDER, which writes one file per rank; add --tee to show it too");
  }
  if (!s.rdzv_conf.empty()) {
    throw UsageError(
        "--rdzv_conf: use --start_timeout and --node_timeout for time limits, --rdzv_endpoint for the address");
  }
  if (!s.local_ranks_filter.empty()) {
    throw UsageError("--local_ranks_filter: use --log_dir FOLDER: rank 0 is shown, the others only write their files");
  }
}

std::vector<std::string> remarks_on(const LaunchSettings& s) {
  std::vector<std::string> names;
  if (s.no_python) names.push_back("--no_python");
  for (const auto& [name, value] :
       {std::pair("--role", &s.role), std::pair("--monitor_interval", &s.monitor_interval),
        std::pair("--start_method", &s.start_method), std::pair("--local_addr", &s.local_addr)}) {
    if (!value->empty()) names.push_back(name);
  }
  if (names.empty()) return {};
  return {fmt::format("{} {} nothing here", join(names, ", "), names.size() == 1 ? "changes" : "change")};
}

std::string remark_on_count(const LaunchPlan& plan, const HostFacts& host) {
  if (plan.num_local_ranks == 1) return "";
  return fmt::format(
      "starting {} ranks on this node, one per {}, where torchrun starts one; --nproc_per_node says how many",
      plan.num_local_ranks, host.num_gpus > 0 ? "GPU" : "two cores");
}

std::optional<std::vector<std::string>> with_plain_tee(const std::vector<std::string>& arguments,
                                                       const LaunchSettings& settings) {
  const auto& command = settings.command;
  if (command.empty() || arguments.size() <= command.size() || !is_tee_value(command[0])) return std::nullopt;
  const auto value = arguments.end() - static_cast<std::ptrdiff_t>(command.size());
  if (value[-1] != "--tee" && value[-1] != "-t") return std::nullopt;
  std::vector<std::string> plain(arguments.begin(), value - 1);
  plain.push_back(is_any_teed(command[0]) ? "--tee=true" : "--tee=false");
  plain.insert(plain.end(), value + 1, arguments.end());
  return plain;
}

}  // namespace tessera
