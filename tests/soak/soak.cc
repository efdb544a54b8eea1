// Random faults against random runs, for a number of minutes. Prints a line for each trial and a table at the end; the
// status is 1 if any trial went wrong, and its folder stays.
//   soak FOLDER MINUTES [SEED [TRIAL]]
// A TRIAL is repeated alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "soak/trial.h"

namespace {

using namespace tessera::testing;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

void print_trial(int number, const TrialResult& trial) {
  fmt::print("{:4}  {:<62} {:<18} at {:5.2f} s  status {:3}  ", number, trial.run, trial.fault, trial.moment,
             trial.status);
  if (!trial.was_hit) {
    fmt::print("over before");
  } else if (trial.gone_after > 0) {
    fmt::print("gone {:5.2f} s", trial.gone_after);
  } else {
    fmt::print("went on    ");
  }
  fmt::print("  {}\n", trial.problems.empty() ? "ok" : "WRONG: " + joined(trial.problems));
  std::fflush(stdout);
}

// Seconds from a fault to the end of all processes, where the ranks had met.
void print_table(const std::vector<TrialResult>& trials) {
  std::map<std::string, std::vector<const TrialResult*>> by_fault;
  for (const TrialResult& trial : trials) by_fault[trial.fault].push_back(&trial);
  fmt::print("\n{:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>9} {:>6}\n", "fault", "trials", "in time", "median s",
             "longest", "resumed", "finished", "wrong");
  for (const auto& [fault, of_fault] : by_fault) {
    std::vector<double> seconds;
    int num_hit = 0, num_resumed = 0, num_on = 0, num_wrong = 0;
    for (const TrialResult* trial : of_fault) {
      num_hit += trial->was_hit ? 1 : 0;
      num_resumed += trial->has_resumed ? 1 : 0;
      num_on += trial->has_finished ? 1 : 0;
      num_wrong += trial->problems.empty() ? 0 : 1;
      if (trial->has_met && trial->gone_after > 0) seconds.push_back(trial->gone_after);
    }
    std::sort(seconds.begin(), seconds.end());
    const std::string median = seconds.empty() ? "-" : fmt::format("{:.2f}", seconds[seconds.size() / 2]);
    const std::string longest = seconds.empty() ? "-" : fmt::format("{:.2f}", seconds.back());
    fmt::print("{:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>9} {:>6}\n", fault, of_fault.size(), num_hit, median, longest,
               num_resumed, num_on, num_wrong);
  }
}

}  // namespace

int main(int num_words, char** words) {
  if (num_words < 3) {
    fmt::print(stderr, "usage: soak FOLDER MINUTES [SEED [TRIAL]]\n");
    return 2;
  }
  const double minutes = std::atof(words[2]);
  const unsigned seed = num_words > 3 ? static_cast<unsigned>(std::atoll(words[3])) : 1;
  const int only = num_words > 4 ? std::atoi(words[4]) : 0;
  Trials trials(std::filesystem::absolute(words[1]), seed);
  std::vector<TrialResult> results;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double, std::ratio<60>>(minutes);
  fmt::print("seed {}\n", seed);
  for (int number = std::max(1, only); std::chrono::steady_clock::now() < until; ++number) {
    results.push_back(trials.run(number));
    print_trial(number, results.back());
    if (only > 0) break;
  }
  print_table(results);
  const auto num_wrong =
      std::count_if(results.begin(), results.end(), [](const TrialResult& trial) { return !trial.problems.empty(); });
  fmt::print("\n{} trials with seed {}: {} wrong{}\n", results.size(), seed, num_wrong,
             num_wrong == 0 ? "" : fmt::format("; their folders are in {}", words[1]));
  return num_wrong == 0 ? 0 : 1;
}
