#include "launch/exit_report.h"

#include <fmt/format.h>
#include <string.h>  // sigabbrev_np

#include <algorithm>
#include <csignal>
#include <fstream>
#include <tuple>

#include "comm/failure.h"
#include "core/text.h"

namespace tessera {
namespace {

bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGABRT ||
         signal == SIGSYS || signal == SIGTRAP;
}

std::string status_text(const RankEnd& end) {
  if (end.signal != 0) return "killed by " + signal_name(end.signal);
  return fmt::format("exit status {}", end.exit_status);
}

Verdict most_telling(const std::vector<Verdict>& verdicts) {
  const auto find = [&](auto&& predicate) { return std::ranges::find_if(verdicts, predicate); };
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

void add_last_words(RankEnd& end, const std::string& failure_file) {
  try {
    if (const auto failure = read_failure(failure_file)) {
      end.message = failure->message;
      const bool says_stopped = end.was_told_to_stop && failure->exit_status == 128 + SIGTERM;
      end.says_consequence = failure->is_consequence || says_stopped;
      end.says_finding = failure->is_finding;
      if (failure->time_ms > 0) end.time_ms = std::min(end.time_ms, failure->time_ms);
    }
  } catch (const std::exception& error) {
    end.note = fmt::format("its failure file cannot be read: {}", error.what());
  }
}

bool is_consequence(const RankEnd& end) {
  if (end.says_consequence || !end.message.empty()) return end.says_consequence;
  return end.was_told_to_stop && !is_crash(end.signal);
}

const RankEnd* first_failure(const std::vector<RankEnd>& ends) {
  const RankEnd* first = nullptr;
  const auto order = [](const RankEnd& end) { return std::tuple(is_consequence(end), end.time_ms, end.rank); };
  for (const RankEnd& end : ends) {
    if (end.failed() && (first == nullptr || order(end) < order(*first))) first = &end;
  }
  return first;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

std::string cause_of(const RankEnd& end) {
  std::string cause = end.message.empty() ? status_text(end) : fmt::format("{} ({})", end.message, status_text(end));
  if (!end.note.empty()) cause += "; " + end.note;
  return cause;
}

std::string describe(const RankEnd& end) {
  if (end.says_finding) return cause_of(end);
  return fmt::format("rank {} on host {} failed: {}", end.rank, end.host, cause_of(end));
}

std::vector<std::string> last_lines(const std::string& path, std::int64_t start, int num_lines) {
  constexpr std::int64_t kMostBytes = 8192;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::int64_t size = file.tellg();
  const std::int64_t from = std::max(start, size - kMostBytes);
  if (from >= size) return {};
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.ends_with('\n')) text.pop_back();
  std::vector<std::string> lines = split(text, '\n');
  if (static_cast<int>(lines.size()) > num_lines) lines.erase(lines.begin(), lines.end() - num_lines);
  return lines;
}

std::string explanation_in(std::string_view words) {
  std::string kept;
  bool is_said = false;
  for (const std::string& line : split(words, '\n')) {
    const auto says = [&](const char* text) { return line.find(text) != std::string::npos; };
    if (says("Forwarding signal") || says("noticed that process rank")) continue;
    is_said = is_said || line.find_first_not_of("- ") != std::string::npos;
    kept.append(line).append("\n");
  }
  return is_said ? std::string(trim(kept)) : "";
}

Verdict judge(const SupervisionResult& result) {
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
  merged.interrupted = std::ranges::any_of(verdicts, [](const Verdict& v) { return v.interrupted; });
  return merged;
}

}  // namespace tessera
