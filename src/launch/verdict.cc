#include "launch/verdict.h"

#include <algorithm>

namespace tessera {
namespace {

Verdict most_telling(const std::vector<Verdict>& verdicts) {
  const auto find = [&](auto&& predicate) { return std::find_if(verdicts.begin(), verdicts.end(), predicate); };
  std::vector<RankEnd> failures;
  for (const Verdict& verdict : verdicts) {
    if (verdict.failure) failures.push_back(*verdict.failure);
  }
  const RankEnd* failure = first_failure(failures);
  if (failure == nullptr || is_consequence(*failure)) {
    for (const auto& found : {find([](const Verdict& v) { return !v.trouble.empty(); }),
                              find([](const Verdict& v) { return v.signal != 0; })}) {
      if (found != verdicts.end()) return *found;
    }
  }
  Verdict merged;
  if (failure != nullptr) {
    merged.failure = *failure;
    merged.status = failure->exit_status;
  }
  return merged;
}

}  // namespace

Verdict judge(const CrewResult& result) {
  Verdict verdict;
  verdict.interrupted = result.interrupted;
  const RankEnd* failure = first_failure(result.ends);
  if (result.signal != 0) {
    // If all ranks handled the signal and exited with 0, the run has succeeded.
    if (failure != nullptr) {
      verdict.status = 128 + result.signal;
      verdict.signal = result.signal;
    }
    return verdict;
  }
  const bool by_itself = failure != nullptr && !is_consequence(*failure);
  if (!result.trouble.empty() && !by_itself) {
    verdict.trouble = result.trouble;
    verdict.status = result.trouble_status;
  } else if (failure != nullptr) {
    verdict.failure = *failure;
    verdict.status = failure->exit_status;
  }
  return verdict;
}

Verdict merge(const std::vector<Verdict>& verdicts) {
  Verdict merged = most_telling(verdicts);
  merged.interrupted = std::any_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.interrupted; });
  return merged;
}

Json to_json(const Verdict& verdict) {
  return {{"status", verdict.status},           {"failure", verdict.failure ? to_json(*verdict.failure) : Json()},
          {"trouble", verdict.trouble},         {"signal", verdict.signal},
          {"interrupted", verdict.interrupted}, {"restart", verdict.restart}};
}

Verdict verdict_from_json(const Json& json) {
  Verdict verdict;
  verdict.status = json.at("status");
  if (!json.at("failure").is_null()) verdict.failure = rank_end_from_json(json.at("failure"));
  verdict.trouble = json.at("trouble");
  verdict.signal = json.at("signal");
  verdict.interrupted = json.at("interrupted");
  verdict.restart = json.at("restart");
  return verdict;
}

}  // namespace tessera
