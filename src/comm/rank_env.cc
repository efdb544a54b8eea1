#include "comm/rank_env.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

// What one family of variables says: each value with the name of its variable.
struct Claim {
  std::string variable;
  std::optional<int> value;
};

struct Family {
  std::string name;
  Claim rank, world_size, local_rank, local_size, node_rank;
  bool present() const { return rank.value.has_value() && world_size.value.has_value(); }
};

Claim claim(const Environment& environment, const std::string& variable) {
  return {variable, environment.find_count(variable)};
}

Family torchrun_family(const Environment& e) {
  return {"torchrun's variables",       claim(e, "RANK"),      claim(e, "WORLD_SIZE"), claim(e, "LOCAL_RANK"),
          claim(e, "LOCAL_WORLD_SIZE"), claim(e, "GROUP_RANK")};
}

Family open_mpi_family(const Environment& e) {
  return {"Open MPI",
          claim(e, "OMPI_COMM_WORLD_RANK"),
          claim(e, "OMPI_COMM_WORLD_SIZE"),
          claim(e, "OMPI_COMM_WORLD_LOCAL_RANK"),
          claim(e, "OMPI_COMM_WORLD_LOCAL_SIZE"),
          Claim{}};
}

// "2(x3),1" -> 2 2 2 1. Empty if the text does not have that form.
std::vector<int> expand_tasks_per_node(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text, ',')) {
    const auto open = part.find("(x");
    const auto count = parse_integer(part.substr(0, open));
    const auto times = open == std::string::npos ? 1 : parse_integer(part.substr(open + 2, part.size() - open - 3));
    if (!count || !times || *times > 100'000) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(*times), static_cast<int>(*count));
  }
  return counts;
}

// Only tasks of a step count: in a batch script SLURM_PROCID is 0 too, but the script is not a rank. SLURM_STEP_ID
// tells them apart: in a script it is absent (or the batch step's huge number).
Family slurm_family(const Environment& e) {
  const auto step = e.find("SLURM_STEP_ID");
  const bool is_task =
      step && parse_integer(*step).value_or(-1) >= 0 && parse_integer(*step).value_or(-1) < 0xFFFFFFF0LL;
  if (!is_task) return {"Slurm", {}, {}, {}, {}, {}};
  Claim size = claim(e, "SLURM_STEP_NUM_TASKS");
  if (!size.value) size = claim(e, "SLURM_NTASKS");
  const Claim node = claim(e, "SLURM_NODEID");
  const auto per_node = expand_tasks_per_node(e.find("SLURM_STEP_TASKS_PER_NODE").value_or(""));
  Claim local_size{"SLURM_STEP_TASKS_PER_NODE", std::nullopt};
  if (node.value && *node.value < static_cast<int>(per_node.size())) {
    local_size.value = per_node[static_cast<std::size_t>(*node.value)];
  }
  return {"Slurm", claim(e, "SLURM_PROCID"), size, claim(e, "SLURM_LOCALID"), local_size, node};
}

void check_agree(const Family& chosen, const Claim& a, const Claim& b) {
  if (!a.value || !b.value || *a.value == *b.value) return;
  throw UsageError(
      fmt::format("{}={}, but {}={} in the environment: they contradict each other. {} started this rank; unset {} (or "
                  "start the ranks with `tessera launch`, which sets these variables itself)",
                  b.variable, *b.value, a.variable, *a.value, chosen.name, b.variable));
}

void check_agree(const Family& chosen, const Family& other) {
  check_agree(chosen, chosen.rank, other.rank);
  check_agree(chosen, chosen.world_size, other.world_size);
  check_agree(chosen, chosen.local_rank, other.local_rank);
  check_agree(chosen, chosen.local_size, other.local_size);
}

// Every rank computes the same address from the step's node list, and a port that two steps on one host are unlikely to
// share.
void fill_slurm_address(const Environment& environment, RankEnv& self) {
  auto nodelist = environment.find("SLURM_STEP_NODELIST");
  if (!nodelist) nodelist = environment.find("SLURM_JOB_NODELIST");
  if (!self.master_addr && nodelist) self.master_addr = expand_nodelist(*nodelist).front();
  const auto job = environment.find_count("SLURM_JOB_ID"), step = environment.find_count("SLURM_STEP_ID");
  if (!self.master_port && job) self.master_port = 20000 + (*job * 16 + step.value_or(0)) % 20000;
  if (self.job_id.empty() && job) self.job_id = fmt::format("slurm-{}.{}", *job, step.value_or(0));
}

void check_ranges(const RankEnv& self) {
  if (self.world_size < 1 || self.rank >= self.world_size) {
    throw UsageError(fmt::format("rank {} of {} ranks ({}): the rank must be from 0 to the number of ranks - 1",
                                 self.rank, self.world_size, self.source));
  }
  if (self.local_size && self.local_rank && *self.local_rank >= *self.local_size) {
    throw UsageError(
        fmt::format("local rank {} of {} ranks on this host ({})", *self.local_rank, *self.local_size, self.source));
  }
}

RankEnv from_family(const Environment& environment, const Family& family) {
  RankEnv self;
  self.rank = *family.rank.value;
  self.world_size = *family.world_size.value;
  self.local_rank = family.local_rank.value;
  self.local_size = family.local_size.value;
  self.node_rank = family.node_rank.value;
  self.source = family.name;
  self.master_addr = environment.find("MASTER_ADDR");
  self.master_port = environment.find_count("MASTER_PORT");
  if (self.master_port && (*self.master_port < 1 || *self.master_port > 65535)) {
    throw UsageError(
        fmt::format("MASTER_PORT={} in the environment is not a port: expected 1 to 65535", *self.master_port));
  }
  self.job_id = environment.find("TORCHELASTIC_RUN_ID").value_or("");
  return self;
}

// "001-003" -> 001 002 003, keeping the width.
void expand_range(const std::string& nodelist, const std::string& prefix, const std::string& range,
                  std::vector<std::string>& hosts) {
  const auto ends = split(range, '-');
  const auto first = parse_integer(ends.front()), last = parse_integer(ends.back());
  constexpr long long kMostHosts = 100'000;  // more is a typing error, not a cluster
  if (ends.size() > 2 || !first || !last || *first > *last || *last - *first >= kMostHosts) {
    throw UsageError(
        fmt::format("cannot read '{}' in the node list '{}': expected numbers like 1-4 or 007", range, nodelist));
  }
  for (long long number = *first; number <= *last; ++number) {
    hosts.push_back(fmt::format("{}{:0{}}", prefix, number, ends.front().size()));
  }
}

// Splits at commas outside brackets.
std::vector<std::string> split_hosts(const std::string& nodelist) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : nodelist) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) throw UsageError(fmt::format("unbalanced brackets in the node list '{}'", nodelist));
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (depth != 0) throw UsageError(fmt::format("unbalanced brackets in the node list '{}'", nodelist));
  return parts;
}

// One comma-separated part; several bracket groups multiply: rack[1-2]n[1-2] is four hosts.
void expand_host(const std::string& nodelist, const std::string& prefix, const std::string& rest,
                 std::vector<std::string>& hosts) {
  const auto open = rest.find('['), close = rest.find(']');
  if (open == std::string::npos) {
    if (prefix.empty() && rest.empty()) throw UsageError(fmt::format("an empty name in the node list '{}'", nodelist));
    hosts.push_back(prefix + rest);
    return;
  }
  std::vector<std::string> prefixes;
  for (const std::string& range : split(rest.substr(open + 1, close - open - 1), ',')) {
    expand_range(nodelist, prefix + rest.substr(0, open), range, prefixes);
  }
  for (const std::string& each : prefixes) expand_host(nodelist, each, rest.substr(close + 1), hosts);
}

}  // namespace

RankEnv discover_rank(const Environment& environment) {
  const Family torchrun = torchrun_family(environment), open_mpi = open_mpi_family(environment),
               slurm = slurm_family(environment);
  // The rank alone, beside Slurm's or torchrun's variables.
  const auto check_pmix = [&](const Family& chosen) {
    check_agree(chosen, chosen.rank, claim(environment, "PMIX_RANK"));
  };
  RankEnv self;
  if (environment.find("TESSERA_LAUNCHED")) {
    if (!torchrun.present()) {
      throw UsageError("TESSERA_LAUNCHED is set, but RANK or WORLD_SIZE is not: unset it, or use `tessera launch`");
    }
    self = from_family(environment, torchrun);
    self.launched = true;
  } else if (open_mpi.present()) {
    // Inside an allocation Slurm's variables describe mpirun's daemon, not the rank.
    check_agree(open_mpi, torchrun);
    self = from_family(environment, open_mpi);
  } else if (slurm.present()) {
    check_agree(slurm, torchrun);
    check_pmix(slurm);
    self = from_family(environment, slurm);
    self.by_srun = true;
    self.num_nodes = environment.find_count("SLURM_STEP_NUM_NODES");
    if (!self.num_nodes) self.num_nodes = environment.find_count("SLURM_NNODES");
    fill_slurm_address(environment, self);
  } else if (torchrun.present()) {
    check_pmix(torchrun);
    self = from_family(environment, torchrun);
  } else if (torchrun.rank.value || torchrun.world_size.value.value_or(1) > 1) {
    throw UsageError(
        fmt::format("{} is set in the environment, but {} is not: set RANK, WORLD_SIZE, LOCAL_RANK, "
                    "MASTER_ADDR and MASTER_PORT, or start the ranks with `tessera launch`, mpirun or srun",
                    torchrun.rank.value ? "RANK" : "WORLD_SIZE", torchrun.rank.value ? "WORLD_SIZE" : "RANK"));
  } else if (environment.find("PMIX_RANK")) {
    throw UsageError(
        "PMIX_RANK is set in the environment, but nothing says how many ranks there are: start the ranks "
        "with `tessera launch`, mpirun or srun --mpi=pmix, or unset it to run one rank alone");
  } else {
    self.local_rank = self.node_rank = 0;
    self.local_size = self.num_nodes = 1;
    self.source = "none: one rank";
  }
  check_ranges(self);
  return self;
}

std::vector<std::string> expand_nodelist(const std::string& nodelist) {
  std::vector<std::string> hosts;
  for (const std::string& part : split_hosts(nodelist)) expand_host(nodelist, "", part, hosts);
  return hosts;
}

}  // namespace tessera
