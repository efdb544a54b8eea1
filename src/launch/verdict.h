// The outcome of an attempt: on one node, and over all nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "launch/crew.h"
#include "launch/exit_report.h"

namespace tessera {

struct Verdict {
  int status = 0;                  // the launcher's exit status, if this is the last attempt
  std::optional<RankEnd> failure;  // the rank to name
  std::string trouble;             // what went wrong apart from the ranks
  int signal = 0;                  // the launcher was told to end
  bool interrupted = false;        // by such a signal, perhaps only after the failure
  bool restart = false;            // decided by node 0, once for all

  bool is_well() const { return status == 0; }
};

Verdict judge(const CrewResult& result);

// Of all nodes' verdicts, the one that explains the others: a rank that failed by itself, else trouble, else a signal,
// else whatever failed first.
Verdict merge(const std::vector<Verdict>& verdicts);

Json to_json(const Verdict& verdict);
Verdict verdict_from_json(const Json& json);

}  // namespace tessera
